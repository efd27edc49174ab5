//! Notifies the user when a process ends its work on a run. A failed notification is logged and has no
//! effect on the run.

use ralph_core::notify::NotifyKind;
use ralph_core::run::RunStatus;
use ralph_core::state::RunState;
use ralph_engine::store::RunDir;
use ralph_providers::http::ProxySettings;
use serde::Serialize;

use super::notify_channels::{NotifyError, post_webhook, show_on_desktop, start_command};
use super::summary::RunSummary;
use crate::app::App;
use crate::config::{NotifySettings, load_user_settings};

/// Sends notifications through the channels of the user's settings.
#[derive(Debug, Clone)]
pub struct Notifier {
    settings: NotifySettings,
    search_path: String,
    network: ProxySettings,
}

/// A notification, as JSON for commands and webhooks.
#[derive(Debug, Serialize)]
pub(super) struct RunNotification {
    version: u8,
    pub(super) event: NotifyKind,
    pub(super) title: String,
    pub(super) repo: String,
    #[serde(flatten)]
    pub(super) summary: RunSummary,
}

impl RunNotification {
    fn new(event: NotifyKind, dir: &RunDir, state: &RunState) -> Self {
        Self {
            version: 1,
            event,
            title: state.plan.title.clone(),
            repo: state.plan.repo.clone(),
            summary: RunSummary::from_state(dir, state),
        }
    }

    /// Returns the notification in one line.
    pub(super) fn text(&self) -> String {
        let ended = match self.event {
            NotifyKind::Finished => "finished",
            NotifyKind::Failed => "failed",
            NotifyKind::NeedsYou => "needs you",
        };
        let reason = self.summary.reason.as_deref();
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        format!("{} {ended}{reason}", self.title)
    }
}

impl Notifier {
    /// Creates the notifier of the user's own settings. Invalid ones do not stop a run.
    pub(crate) fn new(app: &App, network: ProxySettings) -> Self {
        let settings = load_user_settings(&app.layers()).map_or_else(
            |error| {
                tracing::warn!(%error, "there are no notifications: the settings cannot be used");
                NotifySettings::default()
            },
            |settings| settings.notify,
        );
        Self {
            settings,
            search_path: app.search_path().to_owned(),
            network,
        }
    }

    /// Returns whether a terminal rings its bell at the end of a run with this status.
    pub fn rings_bell(&self, status: &RunStatus) -> bool {
        let kind = NotifyKind::for_status(status);
        self.settings.bell && kind.is_some_and(|kind| self.settings.on.contains(&kind))
    }

    /// Sends the notification about a status, if there is one.
    pub(super) async fn notify_status(&self, dir: &RunDir, status: &RunStatus) {
        if let Some(kind) = NotifyKind::for_status(status) {
            self.notify(kind, dir, None).await;
        }
    }

    /// Notifies about a run that its process cannot continue.
    pub(super) async fn notify_error(&self, dir: &RunDir, reason: String) {
        self.notify(NotifyKind::Failed, dir, Some(reason)).await;
    }

    async fn notify(&self, kind: NotifyKind, dir: &RunDir, reason: Option<String>) {
        let NotifySettings {
            on,
            bell: _,
            desktop,
            command,
            webhook,
        } = &self.settings;
        let is_silent = !desktop && command.is_empty() && webhook.is_empty();
        if is_silent || !on.contains(&kind) {
            return;
        }
        let mut notification = match dir.state() {
            Ok(state) => RunNotification::new(kind, dir, &state),
            Err(error) => {
                tracing::warn!(%error, "no notification is sent");
                return;
            }
        };
        if reason.is_some() {
            notification.summary.reason = reason;
        }
        tokio::join!(
            async {
                if *desktop {
                    log_failure(
                        "desktop",
                        show_on_desktop(&notification, &self.search_path).await,
                    );
                }
            },
            async {
                if !command.is_empty() {
                    log_failure("command", start_command(command, &notification).await);
                }
            },
            async {
                if !webhook.is_empty() {
                    let sent = post_webhook(webhook, &notification, &self.network).await;
                    log_failure("webhook", sent);
                }
            },
        );
    }
}

fn log_failure(channel: &str, result: Result<(), NotifyError>) {
    match result {
        Ok(()) => tracing::info!(channel, "a notification was sent"),
        Err(error) => tracing::warn!(channel, %error, "a notification failed"),
    }
}
