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
    env: &ImageTestEnv,
    on: &ImageName,
    effort: ImageEffort,
) -> (ImageName, Vec<ImageProgress>) {
    let (result, reports) = env.ensure(&recipe(on), effort).await;
    (result.unwrap(), reports)
}

#[test]
fn an_agents_image_is_built_once_and_found_again() {
    with_engine(async |env| {
        let base = env.build_stub_base("1").await;
        let (tag, reports) = ensure(&env, &base, ImageEffort::Reuse).await;
        let hash = tag
            .as_str()
            .strip_prefix("agent-loop-sandbox-plain:v")
            .unwrap();
        assert_eq!(hash.len(), 8);
        assert_eq!(built(&reports), [format!("building image `{tag}`")]);
        let steps = reports
            .iter()
            .filter(|progress| matches!(progress, ImageProgress::Step { .. }))
            .count();
        assert!(steps >= 5, "{reports:?}");
        let stub_output =
            ImageProgress::Output("/usr/local/bin/npm install --global pnpm@10".to_owned());
        assert!(reports.contains(&stub_output), "{reports:?}");

        let (again, reports) = ensure(&env, &base, ImageEffort::Reuse).await;
        assert_eq!((again, reports), (tag.clone(), vec![]));
        let predicted = env.images.base_tag(AgentImage::Plain, Some(&base)).await;
        assert_eq!(predicted.unwrap(), Some(tag));
    });
}

#[test]
fn commands_run_as_a_user_with_a_fixed_uid() {
    with_engine(async |env| {
        let base = env.build_stub_base("1").await;
        let (tag, _) = ensure(&env, &base, ImageEffort::Reuse).await;
        assert_eq!(
            env.images.inspect(&tag).await.unwrap().unwrap().user,
            "agent"
        );
        let tests = "test \"$(id -u):$(id -g):$HOME\" = 10001:10001:/home/agent && touch ~/x";
        env.build(&env.name("user"), &format!("FROM {tag}\nRUN {tests}\n"))
            .await;
    });
}

#[test]
fn another_version_of_the_base_results_in_another_image() {
    with_engine(async |env| {
        let base = env.build_stub_base("1").await;
        let (first, _) = ensure(&env, &base, ImageEffort::Reuse).await;
        assert_eq!(env.build_stub_base("2").await, base, "the name stays");
        let (second, reports) = ensure(&env, &base, ImageEffort::Reuse).await;
        assert_ne!(first, second);
        assert_eq!(built(&reports), [format!("building image `{second}`")]);
    });
}

#[test]
fn rebuilding_repeats_every_step_and_does_not_replace_local_images() {
    with_engine(async |env| {
        let base = env.build_stub_base("1").await;
        let (tag, _) = ensure(&env, &base, ImageEffort::Reuse).await;
        let first = env.id(&tag).await;
        let (again, reports) = ensure(&env, &base, ImageEffort::Build).await;
        assert_eq!(
            (&again, built(&reports)),
            (&tag, vec![format!("building image `{tag}`")])
        );
        assert_eq!(env.id(&tag).await, first, "every step was cached");
        let (again, reports) = ensure(&env, &base, ImageEffort::Rebuild).await;
        assert_eq!(
            (&again, built(&reports)),
            (&tag, vec![format!("building image `{tag}`")])
        );
        assert_ne!(env.id(&tag).await, first);
        let first = ImageName::parse(&first).unwrap();
        assert!(
            !env.images.exists(&first).await.unwrap(),
            "the replaced image still exists"
        );
    });
}
