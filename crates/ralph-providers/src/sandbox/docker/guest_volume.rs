//! The guest program on the Docker Engine: a read-only volume shared by all containers.
//!
//! A volume works with a remote engine and with a read-only root, and is filled only once.

use std::collections::HashMap;
use std::io;

use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType, VolumeCreateRequest};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder, UploadToContainerOptionsBuilder,
};
use ralph_guest::best_effort;
use ralph_guest::command::SandboxName;

use crate::docker::{DockerEngine, DockerError};
use crate::sandbox::guest_program::GUEST_PROGRAM;

/// The directory of the program in a container.
pub(super) const GUEST_DIRECTORY: &str = "/.ralph-guest";
/// The file name of the program.
pub(super) const GUEST_FILE: &str = "ralph-guest";
/// The full path of the program.
pub(super) const GUEST_PATH: &str = "/.ralph-guest/ralph-guest";

/// The label of guest volumes, their marker volumes and the containers that fill them. Its value is
/// the name of the guest volume.
pub(super) const GUEST_LABEL: &str = "ralph.guest";

/// Returns whether ralph was built with a guest.
pub(super) fn is_embedded() -> bool {
    !GUEST_PROGRAM.is_empty()
}

/// Returns the name of the volume, which is unique per guest program.
pub(super) fn volume_name() -> String {
    let digest = ralph_core::id::Digest::compute(GUEST_PROGRAM);
    format!("ralph-guest-{}", &digest.as_str()[..16])
}

/// Ensures that the Docker Engine has the program.
///
/// The content of a volume cannot be inspected, so a marker volume records that it is filled. A
/// container that never runs receives the program; its name is random, because several ralph
/// processes may fill the same volume at once, with the same bytes.
pub(super) async fn install(engine: &DockerEngine, image: &str) -> Result<(), DockerError> {
    let volume = volume_name();
    if is_filled(engine, &volume).await? {
        return Ok(());
    }
    let labels = HashMap::from([(GUEST_LABEL.to_owned(), volume.clone())]);
    let request = VolumeCreateRequest {
        name: Some(volume.clone()),
        labels: Some(labels.clone()),
        ..VolumeCreateRequest::default()
    };
    engine
        .call("create a volume", engine.api().create_volume(request))
        .await?;
    let container = format!("ralph-fill-{}", SandboxName::random());
    let filled = fill(engine, image, &volume, &container, labels).await;
    let options = RemoveContainerOptionsBuilder::new().force(true).build();
    let removed = engine.api().remove_container(&container, Some(options));
    // The container never ran; one that remains does no harm, and pruning removes it.
    best_effort(engine.call("remove a container", removed).await);
    filled
}

/// Returns the name of the marker volume, which is created after the first one was filled.
pub(super) fn marker_volume_name(volume: &str) -> String {
    format!("{volume}-filled")
}

async fn is_filled(engine: &DockerEngine, volume: &str) -> Result<bool, DockerError> {
    for name in [volume, &marker_volume_name(volume)] {
        let inspected = engine.api().inspect_volume(name);
        match engine.call("inspect a volume", inspected).await {
            Ok(_) => {}
            Err(error) if error.is_missing() => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

async fn fill(
    engine: &DockerEngine,
    image: &str,
    volume: &str,
    container: &str,
    labels: HashMap<String, String>,
) -> Result<(), DockerError> {
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(vec![format!("{GUEST_DIRECTORY}/{GUEST_FILE}")]),
        labels: Some(labels.clone()),
        host_config: Some(HostConfig {
            network_mode: Some("none".into()),
            mounts: Some(vec![mount(volume, VolumeAccess::ReadWrite)]),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let options = CreateContainerOptionsBuilder::new().name(container).build();
    let created = engine.api().create_container(Some(options), body);
    engine.call("create a container", created).await?;
    let options = UploadToContainerOptionsBuilder::new()
        .path(GUEST_DIRECTORY)
        .build();
    let archive = archive().map_err(|source| DockerError::Call {
        doing: "pack the guest".into(),
        source: Box::new(source.into()),
    })?;
    let body = bollard::body_full(archive.into());
    let uploaded = engine
        .api()
        .upload_to_container(container, Some(options), body);
    engine
        .call("copy the guest into a volume", uploaded)
        .await?;
    let marker = VolumeCreateRequest {
        name: Some(marker_volume_name(volume)),
        labels: Some(labels),
        ..VolumeCreateRequest::default()
    };
    engine
        .call("create a volume", engine.api().create_volume(marker))
        .await?;
    Ok(())
}

fn archive() -> io::Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(GUEST_PROGRAM.len() as u64);
    header.set_mode(0o555);
    header.set_uid(0);
    header.set_gid(0);
    builder.append_data(&mut header, GUEST_FILE, GUEST_PROGRAM)?;
    builder.into_inner()
}

/// Whether a container may modify the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VolumeAccess {
    ReadOnly,
    ReadWrite,
}

/// Returns the mount of the program.
pub(super) fn mount(volume: &str, access: VolumeAccess) -> Mount {
    Mount {
        target: Some(GUEST_DIRECTORY.into()),
        source: Some(volume.to_owned()),
        typ: Some(MountType::VOLUME),
        read_only: Some(access == VolumeAccess::ReadOnly),
        ..Mount::default()
    }
}
