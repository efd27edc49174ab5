//! The guest's program on the engine: a volume that every container has, read-only.
//!
//! A volume works with an engine on any machine and with a read-only root, and is filled only once.

use std::collections::HashMap;
use std::io;

use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType, VolumeCreateRequest};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder, UploadToContainerOptionsBuilder,
};
use ralph_guest::command::Name;

use crate::docker::{Engine, EngineError};
use crate::sandbox::guest_program::GUEST;

/// Where the program is in a container.
pub(super) const DIRECTORY: &str = "/.ralph-guest";
/// The program in that directory.
pub(super) const FILE: &str = "ralph-guest";
/// The program by its whole path.
pub(super) const PATH: &str = "/.ralph-guest/ralph-guest";

/// The label of the file that shows that a volume was filled to its end.
pub(super) const LABEL: &str = "ralph.guest";

/// Tells whether this ralph was built with a guest.
pub(super) fn is_there() -> bool {
    !GUEST.is_empty()
}

/// Returns the name of the volume, which is another one for every other program.
pub(super) fn volume() -> String {
    let digest = ralph_core::id::Digest::of(GUEST);
    format!("ralph-guest-{}", &digest.as_str()[..16])
}

/// Makes sure that the engine has the program.
///
/// A volume cannot be seen to be full, so it is filled under a name of its own by a container that
/// never runs, and every ralph that finds it missing fills it again: the bytes are the same.
pub(super) async fn install(engine: &Engine, image: &str) -> Result<(), EngineError> {
    let volume = volume();
    if is_filled(engine, &volume).await? {
        return Ok(());
    }
    let labels = HashMap::from([(LABEL.to_owned(), volume.clone())]);
    let request = VolumeCreateRequest {
        name: Some(volume.clone()),
        labels: Some(labels.clone()),
        ..VolumeCreateRequest::default()
    };
    engine
        .call("make a volume", engine.api().create_volume(request))
        .await?;
    let container = format!("ralph-fill-{}", Name::random());
    let filled = fill(engine, image, &volume, &container, labels).await;
    let options = RemoveContainerOptionsBuilder::new().force(true).build();
    let removed = engine.api().remove_container(&container, Some(options));
    // It never ran; one that stays is in nobody's way but the eye's.
    engine.call("remove a container", removed).await.ok();
    filled
}

/// A second volume is made after the first was filled, which says so.
pub(super) fn proof(volume: &str) -> String {
    format!("{volume}-filled")
}

async fn is_filled(engine: &Engine, volume: &str) -> Result<bool, EngineError> {
    for name in [volume, &proof(volume)] {
        let looked = engine.api().inspect_volume(name);
        match engine.call("look at a volume", looked).await {
            Ok(_) => {}
            Err(error) if error.is_missing() => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

async fn fill(
    engine: &Engine,
    image: &str,
    volume: &str,
    container: &str,
    labels: HashMap<String, String>,
) -> Result<(), EngineError> {
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(vec![format!("{DIRECTORY}/{FILE}")]),
        labels: Some(labels.clone()),
        host_config: Some(HostConfig {
            network_mode: Some("none".into()),
            mounts: Some(vec![mount(volume, Access::Write)]),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let options = CreateContainerOptionsBuilder::new().name(container).build();
    let created = engine.api().create_container(Some(options), body);
    engine.call("make a container", created).await?;
    let options = UploadToContainerOptionsBuilder::new()
        .path(DIRECTORY)
        .build();
    let archive = archive().map_err(|source| EngineError::Call {
        doing: "pack the guest".into(),
        source: Box::new(source.into()),
    })?;
    let body = bollard::body_full(archive.into());
    let uploaded = engine
        .api()
        .upload_to_container(container, Some(options), body);
    engine.call("put the guest into a volume", uploaded).await?;
    let proof = VolumeCreateRequest {
        name: Some(proof(volume)),
        labels: Some(labels),
        ..VolumeCreateRequest::default()
    };
    engine
        .call("make a volume", engine.api().create_volume(proof))
        .await?;
    Ok(())
}

fn archive() -> io::Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(GUEST.len() as u64);
    header.set_mode(0o555);
    header.set_uid(0);
    header.set_gid(0);
    builder.append_data(&mut header, FILE, GUEST)?;
    builder.into_inner()
}

/// Whether a container may change the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// Returns the mount of the program.
pub(super) fn mount(volume: &str, access: Access) -> Mount {
    Mount {
        target: Some(DIRECTORY.into()),
        source: Some(volume.to_owned()),
        typ: Some(MountType::VOLUME),
        read_only: Some(access == Access::Read),
        ..Mount::default()
    }
}
