//! What is left on an engine besides sandboxes: guest programs that no sandbox uses any more.

use std::collections::{BTreeSet, HashMap};

use bollard::models::{ContainerSummary, Volume};
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListVolumesOptionsBuilder, RemoveContainerOptionsBuilder,
    RemoveVolumeOptions,
};
use jiff::Timestamp;

use super::program;
use super::provider::DockerProvider;
use crate::docker::{Engine, EngineError};

/// Something of a ralph's on an engine that is no sandbox, and that nothing uses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remnant {
    /// The guest's program of another build of ralph, by the name of its volume.
    Program(String),
    /// A container that a program was put into a volume by, left when its ralph was killed.
    Filling(String),
}

impl Remnant {
    /// Returns what the engine calls it.
    pub fn name(&self) -> &str {
        match self {
            Self::Program(name) | Self::Filling(name) => name,
        }
    }
}

impl DockerProvider {
    /// Returns what nothing uses any more, of what was made before this moment. What is younger may be
    /// in the middle of being made.
    pub async fn remnants(&self, before: Timestamp) -> Result<Vec<Remnant>, EngineError> {
        let engine = Engine::connect(self.settings.host.as_deref()).await?;
        let unused = programs(&engine, "true").await?;
        let used = programs(&engine, "false").await?;
        let used: BTreeSet<String> = used.into_iter().map(|volume| volume.name).collect();
        let mut remnants: BTreeSet<Remnant> = unused
            .iter()
            .filter(|volume| is_before(volume, before))
            .filter_map(|volume| volume.labels.get(program::LABEL))
            .filter(|name| **name != program::volume() && !used.contains(*name))
            .map(|name| Remnant::Program(name.clone()))
            .collect();
        let fillings = fillings(&engine).await?;
        remnants.extend(
            fillings
                .into_iter()
                .filter(|filling| filling.created.is_some_and(|at| at < before.as_second()))
                .filter_map(|filling| filling.id.map(Remnant::Filling)),
        );
        Ok(remnants.into_iter().collect())
    }

    /// Removes such a thing. One that is gone, or that is used again meanwhile, is fine.
    pub async fn remove_remnant(&self, remnant: &Remnant) -> Result<(), EngineError> {
        let engine = Engine::connect(self.settings.host.as_deref()).await?;
        match remnant {
            Remnant::Program(name) => {
                // The proof last: a volume without one is filled again by whoever needs it.
                if remove_volume(&engine, name).await? == Removal::Done {
                    remove_volume(&engine, &program::proof(name)).await?;
                }
                Ok(())
            }
            Remnant::Filling(id) => {
                let options = RemoveContainerOptionsBuilder::new().force(true).build();
                let removed = engine.api().remove_container(id, Some(options));
                match engine.call("remove a container", removed).await {
                    Err(error) if error.is_missing() || error.is_conflict() => Ok(()),
                    removed => removed,
                }
            }
        }
    }
}

/// Returns the volumes of guest programs; `dangling` says whether those that no container uses, or
/// the others.
async fn programs(engine: &Engine, dangling: &str) -> Result<Vec<Volume>, EngineError> {
    let filters = HashMap::from([
        ("label".to_owned(), vec![program::LABEL.to_owned()]),
        ("dangling".to_owned(), vec![dangling.to_owned()]),
    ]);
    let options = ListVolumesOptionsBuilder::new().filters(&filters).build();
    let listed = engine.api().list_volumes(Some(options));
    let listed = engine.call("list the volumes", listed).await?;
    Ok(listed.volumes.unwrap_or_default())
}

async fn fillings(engine: &Engine) -> Result<Vec<ContainerSummary>, EngineError> {
    let filters = HashMap::from([("label".to_owned(), vec![program::LABEL.to_owned()])]);
    let options = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    let listed = engine.api().list_containers(Some(options));
    engine.call("list the containers", listed).await
}

/// A volume that does not tell when it was made may be a new one.
fn is_before(volume: &Volume, moment: Timestamp) -> bool {
    let made = volume.created_at.as_ref();
    made.and_then(|text| text.parse::<Timestamp>().ok())
        .is_some_and(|made| made < moment)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Removal {
    Done,
    InUse,
}

async fn remove_volume(engine: &Engine, name: &str) -> Result<Removal, EngineError> {
    let removed = engine
        .api()
        .remove_volume(name, None::<RemoveVolumeOptions>);
    match engine.call("remove a volume", removed).await {
        Ok(()) => Ok(Removal::Done),
        Err(error) if error.is_missing() => Ok(Removal::Done),
        Err(error) if error.is_conflict() => Ok(Removal::InUse),
        Err(error) => Err(error),
    }
}
