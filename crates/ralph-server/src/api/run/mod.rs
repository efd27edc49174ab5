//! The resources below `/runs/{id}`, a file each.

mod actions;
mod artifact;
mod attention;
mod commands;
mod continue_run;
mod debug;
mod diagnostics;
mod diff;
mod egress;
mod etag;
mod evidence;
mod file;
mod guidance;
mod iterations;
mod pull;
mod sandbox;
mod send;
mod show;
mod task;
mod transcript;
mod tree;

use utoipa_axum::router::OpenApiRouter;

use crate::context::ServerContext;

pub(super) use send::require_accepted;

/// Returns the routes below `/runs/{id}`.
pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    let routers = vec![
        show::routes(),
        commands::routes(),
        continue_run::routes(),
        guidance::routes(),
        task::routes(),
        file::routes(),
        tree::routes(),
        diff::routes(),
        iterations::routes(),
        artifact::routes(),
        transcript::routes(),
        actions::routes(),
        evidence::routes(),
        diagnostics::routes(),
        debug::routes(),
        egress::routes(),
        sandbox::routes(),
        attention::routes(),
        pull::routes(),
    ];
    routers
        .into_iter()
        .fold(OpenApiRouter::new(), OpenApiRouter::merge)
}
