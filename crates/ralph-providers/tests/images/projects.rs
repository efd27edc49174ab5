//! Project layers: packages, Dockerfiles, and neither.

use ralph_core::image::{AgentImage, ImageEffort, ImageName, ProjectConfig, ProjectConfigFileKind};
use ralph_providers::docker::images::{DockerImages, ImageBase, ImageProject, ImageRecipe};

use crate::fixture::{BOOKWORM, built, with_engine};

fn bookworm() -> ImageName {
    ImageName::parse(BOOKWORM).unwrap()
}

const OWN: &str = "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n";

#[test]
fn a_project_without_requirements_uses_the_base() {
    with_engine(async |env| {
        for files in [
            &[][..],
            &[("config.json", "{}")],
            &[("dependencies", "# none\n")],
        ] {
            let (result, reports) = env
                .ensure(&env.recipe(&bookworm(), files), ImageEffort::Reuse)
                .await;
            assert_eq!(
                (result.unwrap(), reports),
                (bookworm(), vec![]),
                "{files:?}"
            );
        }
    });
}

#[test]
fn a_dockerfile_copies_the_files_next_to_it() {
    with_engine(async |env| {
        let dockerfile = format!(
            "{OWN}COPY . /context\nRUN test \"$(/context/run.sh)\" = ran && test -L /context/link && ! test -e /context/config.json\n"
        );
        let mut recipe = env.recipe(
            &bookworm(),
            &[
                ("Dockerfile.sandbox", &dockerfile),
                ("run.sh", "#!/bin/sh\necho ran\n"),
                ("link", "run.sh"),
                ("config.json", "{}"),
                ("dependencies", "not a package list !\n"),
            ],
        );
        let files = &mut recipe.project.as_mut().unwrap().config.files;
        files.get_mut("run.sh").unwrap().kind = ProjectConfigFileKind::Executable;
        files.get_mut("link").unwrap().kind = ProjectConfigFileKind::Link;
        let (tag, reports) = env.ensure(&recipe, ImageEffort::Reuse).await;
        let tag = tag.unwrap();
        let start = format!(
            "agent-loop-sandbox-plain-test-{}:v",
            env.unique_part.trim_matches('.')
        );
        assert!(tag.as_str().starts_with(&start), "{tag}");
        assert_eq!(built(&reports), [format!("building image `{tag}`")]);
    });
}

#[test]
fn a_project_is_rebuilt_only_when_it_changes() {
    with_engine(async |env| {
        let dockerfile = format!("{OWN}LABEL a=b\n");
        let own = ("Dockerfile.sandbox", dockerfile.as_str());
        let recipe = env.recipe(&bookworm(), &[own]);
        let (tag, _) = env.ensure(&recipe, ImageEffort::Reuse).await;
        let tag = tag.unwrap();
        let (again, reports) = env.ensure(&recipe, ImageEffort::Reuse).await;
        assert_eq!((again.unwrap(), reports), (tag.clone(), vec![]));
        let (again, reports) = env.ensure(&recipe, ImageEffort::Rebuild).await;
        assert_eq!(
            (again.unwrap(), built(&reports).len()),
            (tag.clone(), 1),
            "forced"
        );

        let file = env.recipe(&bookworm(), &[own, ("x", "1")]);
        let (other, reports) = env.ensure(&file, ImageEffort::Reuse).await;
        assert_ne!(other.unwrap(), tag);
        assert_eq!(built(&reports).len(), 1);
    });
}

#[test]
fn a_changed_named_base_rebuilds_the_project() {
    with_engine(async |env| {
        let base = env.name("base");
        let dockerfile = format!("{OWN}LABEL a=b\n");
        let recipe = env.recipe(&base, &[("Dockerfile.sandbox", &dockerfile)]);
        env.build(&base, &format!("FROM {BOOKWORM}\nLABEL version=1\n"))
            .await;
        let (first, _) = env.ensure(&recipe, ImageEffort::Reuse).await;
        env.build(&base, &format!("FROM {BOOKWORM}\nLABEL version=2\n"))
            .await;
        let (second, _) = env.ensure(&recipe, ImageEffort::Reuse).await;
        assert_ne!(first.unwrap(), second.unwrap());
    });
}

#[test]
fn both_layers_are_forced_together() {
    with_engine(async |env| {
        let stage = env.build_stub_base("1").await;
        let dockerfile = format!("{OWN}LABEL a=b\n");
        let recipe = ImageRecipe {
            agent: AgentImage::Plain,
            base: ImageBase::Agent { on: Some(stage) },
            project: Some(ImageProject {
                name: env.unique_part.clone(),
                config: ProjectConfig::from_files([("Dockerfile.sandbox", dockerfile)]),
            }),
        };
        let (tag, reports) = env.ensure(&recipe, ImageEffort::Reuse).await;
        let tag = tag.unwrap();
        let base = built(&reports)[0].clone();
        let own = base
            .trim_start_matches("building image `")
            .trim_end_matches('`');
        env.track(&ImageName::parse(own).unwrap());
        let both = [base, format!("building image `{tag}`")];
        assert_eq!(built(&reports), both);
        let (again, reports) = env.ensure(&recipe, ImageEffort::Rebuild).await;
        assert_eq!((again.unwrap(), built(&reports)), (tag, both.to_vec()));
    });
}

#[test]
fn packages_are_installed() {
    with_engine(async |env| {
        // The only test that installs packages, so it needs the host's network.
        let checks = env.checks_directory.path().join("images");
        let images = DockerImages::new(env.engine.clone(), checks, env.clock.clone())
            .with_build_network("host");
        let recipe = env.recipe(
            &bookworm(),
            &[("dependencies", "tree # shows directories\n\n")],
        );
        let mut reports = Vec::new();
        let tag = images
            .ensure(&recipe, ImageEffort::Reuse, &mut |progress| {
                reports.push(progress);
            })
            .await
            .unwrap_or_else(|error| panic!("{error}\n{}", error.tail().join("\n")));
        env.track(&tag);
        assert_eq!(built(&reports), [format!("building image `{tag}`")]);
        let found = env.images.inspect(&tag).await.unwrap().unwrap();
        assert_eq!(found.user, "agent");
        let dockerfile =
            format!("FROM {tag}\nUSER root\nRUN tree --version && ! ls /var/lib/apt/lists/*\n");
        env.build(&env.name("packages"), &dockerfile).await;
    });
}
