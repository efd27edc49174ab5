# The image of container sandboxes, made by Nix instead of a Dockerfile.
#
#   nix build .#dockerImage      makes ./result, which `docker load < result` loads as ralph:latest
#   nix run .#docker-image       makes it and loads it
#
# `ralph image build` does both where `nix` is installed. A project's layer with packages of Debian
# cannot be put on this image: it has no apt-get.
{
  description = "The image of ralph's container sandboxes";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      # Containers run Linux; a Mac builds the image with its Linux builder.
      linux = {
        x86_64-linux = "x86_64-linux";
        aarch64-linux = "aarch64-linux";
        x86_64-darwin = "x86_64-linux";
        aarch64-darwin = "aarch64-linux";
      };
      forAllSystems = nixpkgs.lib.genAttrs (builtins.attrNames linux);

      # The number that commands run as: ralph relies on it.
      agent = "10001";

      imageFor = pkgs:
        let
          users = pkgs.dockerTools.fakeNss.override {
            extraPasswdLines = [ "agent:x:${agent}:${agent}:agent:/home/agent:/bin/bash" ];
            extraGroupLines = [ "agent:x:${agent}:" ];
          };
          gitConfiguration = pkgs.writeTextDir "etc/gitconfig" ''
            [user]
              name = ralph
              email = ralph@localhost
            [init]
              defaultBranch = main
          '';
          # Put the real program in its place in an image of your own.
          cursor = pkgs.writeShellScriptBin "cursor-agent" ''
            echo "cursor-agent is not part of this image" >&2
            exit 127
          '';
        in
        pkgs.dockerTools.buildLayeredImage {
          name = "ralph";
          tag = "latest";
          contents = [
            users
            gitConfiguration
            cursor
            pkgs.dockerTools.binSh
            pkgs.dockerTools.usrBinEnv
            pkgs.dockerTools.caCertificates
          ] ++ (with pkgs; [
            bashInteractive coreutils findutils gnugrep gnused gawk gnutar gzip xz which less procps diffutils patch
            curl git gnupg lsb-release sudo iptables dnsutils openssh
            jq ripgrep fd gnumake gcc
            nodejs pnpm
            (python312.withPackages (python: [ python.pip python.virtualenv ]))
            cargo rustc rustfmt clippy
          ]);
          fakeRootCommands = ''
            mkdir -p home/agent tmp var/tmp
            chown ${agent}:${agent} home/agent
            chmod 1777 tmp var/tmp
          '';
          config = {
            User = "agent";
            WorkingDir = "/home/agent";
            Cmd = [ "/bin/bash" ];
            Env = [
              "PATH=/home/agent/.local/bin:/usr/local/bin:/usr/bin:/bin"
              "SSL_CERT_FILE=/etc/ssl/certs/ca-bundle.crt"
              "NIX_SSL_CERT_FILE=/etc/ssl/certs/ca-bundle.crt"
            ];
          };
        };
    in
    {
      packages = forAllSystems (system: rec {
        dockerImage = imageFor nixpkgs.legacyPackages.${linux.${system}};
        default = dockerImage;
      });

      apps = forAllSystems (system:
        let
          load = nixpkgs.legacyPackages.${system}.writeShellApplication {
            name = "docker-image";
            runtimeInputs = [ nixpkgs.legacyPackages.${system}.docker-client ];
            text = "docker load < ${self.packages.${system}.dockerImage}";
          };
        in
        {
          docker-image = {
            type = "app";
            program = "${load}/bin/docker-image";
          };
        });
    };
}
