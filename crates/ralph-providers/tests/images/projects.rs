//! Project layers: packages, Dockerfiles, and neither.

use ralph_core::image::{AgentImage, ImageEffort, ImageName, ProjectConfig, ProjectConfigFileKind};
use ralph_providers::docker::images::{DockerImages, ImageBase, ImageProject, ImageRecipe};

use crate::fixture::{BOOKWORM, built, with_engine};

fn bookworm() -> ImageName {
    ImageName::parse(BOOKWORM).unwrap()
}

const OWN: &str = "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n";

#[test]
fn a_project_that_asks_for_nothing_gets_the_base() {
    with_engine(async |ground| {
        for files in [
            &[][..],
            &[("config.json", "{}")],
            &[("dependencies", "# none\n")],
        ] {
            let (ended, told) = ground
                .ensure(&ground.recipe(&bookworm(), files), ImageEffort::Reuse)
                .await;
            assert_eq!((ended.unwrap(), told), (bookworm(), vec![]), "{files:?}");
        }
    });
}

#[test]
fn a_dockerfile_copies_what_lies_beside_it() {
    with_engine(async |ground| {
        let dockerfile = format!(
            "{OWN}COPY . /context\nRUN test \"$(/context/run.sh)\" = ran && test -L /context/link && ! test -e /context/config.json\n"
        );
        let mut recipe = ground.recipe(
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
        let (tag, told) = ground.ensure(&recipe, ImageEffort::Reuse).await;
        let tag = tag.unwrap();
        let start = format!(
            "agent-loop-sandbox-plain-test-{}:v",
            ground.unique_part.trim_matches('.')
        );
        assert!(tag.as_str().starts_with(&start), "{tag}");
        assert_eq!(built(&told), [format!("building image `{tag}`")]);
    });
}

#[test]
fn a_project_is_rebuilt_only_when_it_changes() {
    with_engine(async |ground| {
        let dockerfile = format!("{OWN}LABEL a=b\n");
        let own = ("Dockerfile.sandbox", dockerfile.as_str());
        let recipe = ground.recipe(&bookworm(), &[own]);
        let (tag, _) = ground.ensure(&recipe, ImageEffort::Reuse).await;
        let tag = tag.unwrap();
        let (again, told) = ground.ensure(&recipe, ImageEffort::Reuse).await;
        assert_eq!((again.unwrap(), told), (tag.clone(), vec![]));
        let (again, told) = ground.ensure(&recipe, ImageEffort::Rebuild).await;
        assert_eq!(
            (again.unwrap(), built(&told).len()),
            (tag.clone(), 1),
            "forced"
        );

        let file = ground.recipe(&bookworm(), &[own, ("x", "1")]);
        let (other, told) = ground.ensure(&file, ImageEffort::Reuse).await;
        assert_ne!(other.unwrap(), tag);
        assert_eq!(built(&told).len(), 1);
    });
}

#[test]
fn a_changed_named_base_rebuilds_the_project() {
    with_engine(async |ground| {
        let base = ground.name("base");
        let dockerfile = format!("{OWN}LABEL a=b\n");
        let recipe = ground.recipe(&base, &[("Dockerfile.sandbox", &dockerfile)]);
        ground
            .build(&base, &format!("FROM {BOOKWORM}\nLABEL version=1\n"))
            .await;
        let (first, _) = ground.ensure(&recipe, ImageEffort::Reuse).await;
        ground
            .build(&base, &format!("FROM {BOOKWORM}\nLABEL version=2\n"))
            .await;
        let (second, _) = ground.ensure(&recipe, ImageEffort::Reuse).await;
        assert_ne!(first.unwrap(), second.unwrap());
    });
}

#[test]
fn both_layers_are_forced_together() {
    with_engine(async |ground| {
        let stage = ground.build_stub_base("1").await;
        let dockerfile = format!("{OWN}LABEL a=b\n");
        let recipe = ImageRecipe {
            agent: AgentImage::Plain,
            base: ImageBase::Agent { on: Some(stage) },
            project: Some(ImageProject {
                name: ground.unique_part.clone(),
                config: ProjectConfig::from_files([("Dockerfile.sandbox", dockerfile)]),
            }),
        };
        let (tag, told) = ground.ensure(&recipe, ImageEffort::Reuse).await;
        let tag = tag.unwrap();
        let base = built(&told)[0].clone();
        let own = base
            .trim_start_matches("building image `")
            .trim_end_matches('`');
        ground.track(&ImageName::parse(own).unwrap());
        let both = [base, format!("building image `{tag}`")];
        assert_eq!(built(&told), both);
        let (again, told) = ground.ensure(&recipe, ImageEffort::Rebuild).await;
        assert_eq!((again.unwrap(), built(&told)), (tag, both.to_vec()));
    });
}

#[test]
fn packages_are_installed() {
    with_engine(async |ground| {
        // The only test that installs packages, so it needs the host's network.
        let place = ground.checks_directory.path().join("images");
        let images = DockerImages::new(ground.engine.clone(), place, ground.clock.clone())
            .with_build_network("host");
        let recipe = ground.recipe(
            &bookworm(),
            &[("dependencies", "tree # shows directories\n\n")],
        );
        let mut told = Vec::new();
        let tag = images
            .ensure(&recipe, ImageEffort::Reuse, &mut |progress| {
                told.push(progress);
            })
            .await
            .unwrap_or_else(|error| panic!("{error}\n{}", error.tail().join("\n")));
        ground.track(&tag);
        assert_eq!(built(&told), [format!("building image `{tag}`")]);
        let found = ground.images.inspect(&tag).await.unwrap().unwrap();
        assert_eq!(found.user, "agent");
        let dockerfile =
            format!("FROM {tag}\nUSER root\nRUN tree --version && ! ls /var/lib/apt/lists/*\n");
        ground.build(&ground.name("packages"), &dockerfile).await;
    });
}
