//! Finds and removes guest volumes and fill containers on the Docker Engine that no sandbox uses.

use std::collections::{BTreeSet, HashMap};

use bollard::models::{ContainerSummary, Volume};
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListVolumesOptionsBuilder, RemoveContainerOptionsBuilder,
    RemoveVolumeOptions,
};
use jiff::Timestamp;
use ralph_core::parse_value;

use super::guest_volume;
use super::provider::DockerProvider;
use crate::docker::{DockerEngine, DockerError};

/// An unused object of ralph on the Docker Engine, other than a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnusedVolume {
    /// The guest program of another ralph build, by volume name.
    GuestVolume(String),
    /// A container for filling a guest volume, left behind by a killed ralph, by id.
    FillContainer(String),
}

impl UnusedVolume {
    /// Returns the volume's name or the container's id.
    pub fn name(&self) -> &str {
        match self {
            Self::GuestVolume(name) | Self::FillContainer(name) => name,
        }
    }
}

impl DockerProvider {
    /// Returns the unused objects created before a point in time. Newer ones may still be in
    /// preparation.
    pub async fn unused_volumes(
        &self,
        before: Timestamp,
    ) -> Result<Vec<UnusedVolume>, DockerError> {
        let engine = DockerEngine::connect(self.settings.host.as_deref()).await?;
        let unused = guest_volumes(&engine, "true").await?;
        let used = guest_volumes(&engine, "false").await?;
        let used: BTreeSet<String> = used.into_iter().map(|volume| volume.name).collect();
        let mut objects: BTreeSet<UnusedVolume> = unused
            .iter()
            .filter(|volume| is_before(volume, before))
            .filter_map(|volume| volume.labels.get(guest_volume::GUEST_LABEL))
            .filter(|name| **name != guest_volume::volume_name() && !used.contains(*name))
            .map(|name| UnusedVolume::GuestVolume(name.clone()))
            .collect();
        let containers = fill_containers(&engine).await?;
        objects.extend(
            containers
                .into_iter()
                .filter(|container| container.created.is_some_and(|at| at < before.as_second()))
                .filter_map(|container| container.id.map(UnusedVolume::FillContainer)),
        );
        Ok(objects.into_iter().collect())
    }

    /// Removes an unused object. One that is missing or in use again is not an error.
    pub async fn remove_unused(&self, object: &UnusedVolume) -> Result<(), DockerError> {
        let engine = DockerEngine::connect(self.settings.host.as_deref()).await?;
        match object {
            UnusedVolume::GuestVolume(name) => {
                // The marker last, and only without its volume: a volume that is in use and has no
                // marker would be filled again.
                if remove_volume(&engine, name).await? == Removal::Done {
                    remove_volume(&engine, &guest_volume::marker_volume_name(name)).await?;
                }
                Ok(())
            }
            UnusedVolume::FillContainer(id) => {
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

/// Returns the guest volumes; `dangling` selects those that no container uses, or the others.
async fn guest_volumes(engine: &DockerEngine, dangling: &str) -> Result<Vec<Volume>, DockerError> {
    let filters = HashMap::from([
        (
            "label".to_owned(),
            vec![guest_volume::GUEST_LABEL.to_owned()],
        ),
        ("dangling".to_owned(), vec![dangling.to_owned()]),
    ]);
    let options = ListVolumesOptionsBuilder::new().filters(&filters).build();
    let listed = engine.api().list_volumes(Some(options));
    let listed = engine.call("list the volumes", listed).await?;
    Ok(listed.volumes.unwrap_or_default())
}

async fn fill_containers(engine: &DockerEngine) -> Result<Vec<ContainerSummary>, DockerError> {
    let filters = HashMap::from([(
        "label".to_owned(),
        vec![guest_volume::GUEST_LABEL.to_owned()],
    )]);
    let options = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    let listed = engine.api().list_containers(Some(options));
    engine.call("list the containers", listed).await
}

/// A volume without a creation time may be new, so it is excluded.
fn is_before(volume: &Volume, moment: Timestamp) -> bool {
    let created = volume.created_at.as_ref();
    created
        .and_then(|text| parse_value::<Timestamp>(text))
        .is_some_and(|created| created < moment)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Removal {
    Done,
    InUse,
}

async fn remove_volume(engine: &DockerEngine, name: &str) -> Result<Removal, DockerError> {
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
