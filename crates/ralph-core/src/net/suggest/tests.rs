//! Tests with files as they occur in projects.

use super::*;

fn suggested(path: &str, text: &str) -> Vec<String> {
    suggest(path, text.as_bytes())
        .into_iter()
        .map(|found| match found.port {
            Some(port) => format!("{}:{port}", found.host),
            None => found.host.to_string(),
        })
        .collect()
}

#[test]
fn hosts_are_found_in_lockfiles() {
    let npm = r#"{"packages":{
        "node_modules/a":{"resolved":"https://npm.example/a/-/a-1.0.0.tgz"},
        "node_modules/b":{"resolved":"https://npm.example/b/-/b-1.0.0.tgz"},
        "node_modules/c":{"resolved":"git+https://git.example/c.git#abc"}}}"#;
    let cargo = "[[package]]\nname = \"a\"\nsource = \"registry+https://crates.example/index\"\n\
                 [[package]]\nsource = \"git+https://git.example/b?rev=1#1\"\n";
    let yarn = "a@^1:\n  resolved \"https://yarn.example:8443/a/-/a-1.tgz#abc\"\n";
    let uv = "[[package]]\nsource = { registry = \"https://py.example/simple\" }\n\
              sdist = { url = \"https://files.example/a.tar.gz\" }\n";
    let go = "go.example/a v1.0.0 h1:x=\ngo.example/a v1.0.0/go.mod h1:y=\ncode.example/b/c v2.0.0 h1:z=\n";
    for (path, text, hosts) in [
        (
            "package-lock.json",
            npm,
            &["git.example", "npm.example"][..],
        ),
        (
            "web/package-lock.json",
            npm,
            &["git.example", "npm.example"],
        ),
        ("Cargo.lock", cargo, &["crates.example", "git.example"]),
        ("yarn.lock", yarn, &["yarn.example:8443"]),
        ("uv.lock", uv, &["files.example", "py.example"]),
        ("go.sum", go, &["code.example", "go.example"]),
        ("README.md", npm, &[]),
    ] {
        assert_eq!(suggested(path, text), hosts, "{path}");
    }
}

#[test]
fn hosts_are_found_in_package_manager_settings() {
    let npmrc = "; https://comment.example/\n@own:registry=https://npm.corp.example/\n\
                 //npm.corp.example/:_authToken=${TOKEN}\n//other.corp.example/path/:always-auth=true\n";
    let pip = "[global]\nindex-url = https://user:secret@py.corp.example/simple\n# https://comment.example\n";
    let cargo = "[registries.own]\nindex = \"sparse+https://crates.corp.example:8443/index/\"\n";
    let apt =
        "deb [arch=amd64] http://apt.corp.example/debian bookworm main # https://comment.example\n";
    let requirements = "--extra-index-url https://py.corp.example/simple\na==1.0\nb @ https://files.example/b.whl\n";
    for (path, text, hosts) in [
        (
            ".npmrc",
            npmrc,
            &["npm.corp.example", "other.corp.example"][..],
        ),
        ("pip.conf", pip, &["py.corp.example"]),
        (".cargo/config.toml", cargo, &["crates.corp.example:8443"]),
        ("config.toml", cargo, &[]),
        ("etc/apt/sources.list", apt, &["apt.corp.example"]),
        (
            "etc/apt/sources.list.d/own.list",
            apt,
            &["apt.corp.example"],
        ),
        (
            "requirements.txt",
            requirements,
            &["files.example", "py.corp.example"],
        ),
        (
            "requirements/dev.txt",
            requirements,
            &["files.example", "py.corp.example"],
        ),
        ("notes.txt", requirements, &[]),
    ] {
        assert_eq!(suggested(path, text), hosts, "{path}");
    }
}

#[test]
fn a_suggestion_names_its_file() {
    let text = b"registry=https://npm.corp.example/";
    let expected = HostSuggestion {
        host: Host::parse("npm.corp.example").unwrap(),
        port: None,
        path: "web/.npmrc".to_owned(),
        reason: "registries of npm",
    };
    assert_eq!(suggest("web/.npmrc", text), [expected]);
    assert!(is_host_file("a/b/Cargo.lock") && !is_host_file("a/b/Cargo.toml"));
}

#[test]
fn only_public_names_are_suggested() {
    let text = "registry=http://localhost:4873/\na=http://10.0.0.1/\nb=https://intranet/\n\
                c=https://a b/\nd=https://-bad.example/\ne=https://\nf=ssh://git.example/x\n";
    assert_eq!(suggested(".npmrc", text), [""; 0]);
    let many: String = (0..1000)
        .map(|n| ["https://h", &n.to_string(), ".example/\n"].concat())
        .collect();
    assert_eq!(suggested("Cargo.lock", &many).len(), MAX_HOSTS);
}
