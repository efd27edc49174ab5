//! Agent images: built once, reused, and rebuilt when their base image changes.

use ralph_core::image::{AgentImage, ImageEffort, ImageName};
use ralph_providers::docker::images::{ImageBase, ImageProgress, ImageRecipe};

use crate::fixture::{ImageTestEnv, built, with_engine};

fn recipe(on: &ImageName) -> ImageRecipe {
    ImageRecipe {
        agent: AgentImage::Plain,
        base: ImageBase::Agent {
            on: Some(on.clone()),
        },
        project: None,
    }
}

async fn ensure(
    ground: &ImageTestEnv,
    on: &ImageName,
    effort: ImageEffort,
) -> (ImageName, Vec<ImageProgress>) {
    let (ended, told) = ground.ensure(&recipe(on), effort).await;
    (ended.unwrap(), told)
}

#[test]
fn an_agents_image_is_built_once_and_found_again() {
    with_engine(async |ground| {
        let stage = ground.build_stub_base("1").await;
        let (tag, told) = ensure(&ground, &stage, ImageEffort::Reuse).await;
        let hash = tag
            .as_str()
            .strip_prefix("agent-loop-sandbox-plain:v")
            .unwrap();
        assert_eq!(hash.len(), 8);
        assert_eq!(built(&told), [format!("building image `{tag}`")]);
        let steps = told
            .iter()
            .filter(|progress| matches!(progress, ImageProgress::Step { .. }))
            .count();
        assert!(steps >= 5, "{told:?}");
        let said = ImageProgress::Output("/usr/local/bin/npm install --global pnpm@10".to_owned());
        assert!(told.contains(&said), "{told:?}");

        let (again, told) = ensure(&ground, &stage, ImageEffort::Reuse).await;
        assert_eq!((again, told), (tag.clone(), vec![]));
        let foretold = ground
            .images
            .base_tag(AgentImage::Plain, Some(&stage))
            .await;
        assert_eq!(foretold.unwrap(), Some(tag));
    });
}

#[test]
fn commands_run_as_a_user_with_a_fixed_uid() {
    with_engine(async |ground| {
        let stage = ground.build_stub_base("1").await;
        let (tag, _) = ensure(&ground, &stage, ImageEffort::Reuse).await;
        assert_eq!(
            ground.images.inspect(&tag).await.unwrap().unwrap().user,
            "agent"
        );
        let tests = "test \"$(id -u):$(id -g):$HOME\" = 10001:10001:/home/agent && touch ~/x";
        ground
            .build(&ground.name("user"), &format!("FROM {tag}\nRUN {tests}\n"))
            .await;
    });
}

#[test]
fn another_version_of_the_base_makes_another_image() {
    with_engine(async |ground| {
        let stage = ground.build_stub_base("1").await;
        let (first, _) = ensure(&ground, &stage, ImageEffort::Reuse).await;
        assert_eq!(ground.build_stub_base("2").await, stage, "the name stays");
        let (second, told) = ensure(&ground, &stage, ImageEffort::Reuse).await;
        assert_ne!(first, second);
        assert_eq!(built(&told), [format!("building image `{second}`")]);
    });
}

#[test]
fn rebuilding_repeats_every_step_and_does_not_replace_local_images() {
    with_engine(async |ground| {
        let stage = ground.build_stub_base("1").await;
        let (tag, _) = ensure(&ground, &stage, ImageEffort::Reuse).await;
        let first = ground.id(&tag).await;
        let (again, told) = ensure(&ground, &stage, ImageEffort::Build).await;
        assert_eq!(
            (&again, built(&told)),
            (&tag, vec![format!("building image `{tag}`")])
        );
        assert_eq!(ground.id(&tag).await, first, "every step was remembered");
        let (again, told) = ensure(&ground, &stage, ImageEffort::Rebuild).await;
        assert_eq!(
            (&again, built(&told)),
            (&tag, vec![format!("building image `{tag}`")])
        );
        assert_ne!(ground.id(&tag).await, first);
        let first = ImageName::parse(&first).unwrap();
        assert!(
            !ground.images.exists(&first).await.unwrap(),
            "it is in nobody's way"
        );
    });
}
