//! The usual credentials.

use std::sync::Arc;

use hyper::Method;
use hyper::header::HeaderValue;
use hyper::http::uri::{Authority, Scheme};
use ralph_core::net::{Endpoint, Host, HostError};
use ralph_core::secret::Secret;

use super::path::{Pattern, is_plain};
use super::route::{Asks, Dialect, Kind, Query, Upstream, Use};
use super::{Phantom, Route};
use crate::http::Place;
use crate::meter::Wire;

/// Why a credential cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// The address of a provider is not `https://host/path`, or `http://` to this machine.
    #[error("`{url}` is not the base URL of a provider: it must be `https://host/path`")]
    Url {
        /// The address.
        url: String,
    },
    /// Its host is not one.
    #[error("`{url}`: the host {reason}")]
    Host {
        /// The address.
        url: String,
        /// Which rule it breaks.
        reason: HostError,
    },
    /// A name that cannot be part of a path.
    #[error("`{name}` cannot be part of a path: only letters, digits, `-`, `_` and `.` can")]
    Name {
        /// The name.
        name: String,
    },
    /// The credential has something that no header can carry.
    #[error("the credential `{name}` is empty or has characters that no header can carry")]
    Secret {
        /// Its name.
        name: String,
    },
}

impl Route {
    /// An API key of Anthropic.
    pub fn anthropic_key(secret: Secret) -> Result<Self, RouteError> {
        let phantom = Phantom::random("sk-ant-api03-", 93, "AA");
        let draft = Draft::new("anthropic", Kind::ApiKey, phantom);
        draft.anthropic("https://api.anthropic.com", secret)
    }

    /// A login at Anthropic, as `claude setup-token` gives it.
    pub fn anthropic_login(secret: Secret) -> Result<Self, RouteError> {
        let phantom = Phantom::random("sk-ant-oat01-", 93, "AA");
        let draft = Draft::new("anthropic", Kind::AnthropicLogin, phantom);
        draft.anthropic("https://api.anthropic.com", secret)
    }

    /// A key of somebody else who speaks as Anthropic does, at a base URL without `/v1`.
    pub fn anthropic_compatible(
        name: &str,
        base_url: &str,
        secret: Secret,
    ) -> Result<Self, RouteError> {
        let phantom = Phantom::random("sk-", 48, "");
        Draft::new(name, Kind::Bearer, phantom).anthropic(base_url, secret)
    }

    /// An API key of OpenAI.
    pub fn openai(secret: Secret) -> Result<Self, RouteError> {
        let phantom = Phantom::random("sk-proj-", 48, "");
        let draft = Draft::new("openai", Kind::Bearer, phantom);
        draft.openai("https://api.openai.com/v1", secret)
    }

    /// A key of somebody else who speaks as OpenAI does, at a base URL with everything that comes
    /// before `/chat/completions`.
    pub fn openai_compatible(
        name: &str,
        base_url: &str,
        secret: Secret,
    ) -> Result<Self, RouteError> {
        let phantom = Phantom::random("sk-", 48, "");
        Draft::new(name, Kind::Bearer, phantom).openai(base_url, secret)
    }

    /// A key of Z.AI.
    pub fn zai(secret: Secret) -> Result<Self, RouteError> {
        let phantom = Phantom::random("", 32, ".ralphralphralph0");
        let draft = Draft::new("zai", Kind::Bearer, phantom);
        draft.openai("https://api.z.ai/api/paas/v4", secret)
    }

    /// A token of GitHub that may read one repository over HTTPS, and do nothing else.
    pub fn github(owner: &str, repository: &str, secret: Secret) -> Result<Self, RouteError> {
        for name in [owner, repository] {
            if name.contains('/') || !is_plain(&format!("/{name}")) {
                let name = name.to_owned();
                return Err(RouteError::Name { name });
            }
        }
        let repository = repository.strip_suffix(".git").unwrap_or(repository);
        let path = |rest: &str| Pattern::Exact(format!("/{owner}/{repository}.git/{rest}"));
        let phantom = Phantom::random("ghp_", 36, "");
        let mut draft = Draft::new("github", Kind::GitBasic, phantom);
        draft.is_exclusive = false;
        draft.dialect = Dialect::Plain;
        draft.uses = vec![
            Use {
                method: Method::GET,
                path: path("info/refs"),
                query: Query::Exactly("service=git-upload-pack"),
                asks: Asks::Nothing,
            },
            Use {
                method: Method::POST,
                path: path("git-upload-pack"),
                query: Query::None,
                asks: Asks::Nothing,
            },
        ];
        draft.finish("https://github.com", secret)
    }

    /// The same credential at another base URL.
    pub fn at(mut self, base_url: &str) -> Result<Self, RouteError> {
        self.upstream = upstream(base_url)?;
        Ok(self)
    }
}

/// A route that is being put together.
struct Draft<'a> {
    name: &'a str,
    kind: Kind,
    phantom: Phantom,
    prefix: String,
    dialect: Dialect,
    uses: Vec<Use>,
    is_exclusive: bool,
}

impl<'a> Draft<'a> {
    fn new(name: &'a str, kind: Kind, phantom: Phantom) -> Self {
        Self {
            name,
            kind,
            phantom,
            prefix: format!("/{name}"),
            dialect: Dialect::Plain,
            uses: Vec::new(),
            is_exclusive: true,
        }
    }

    fn anthropic(mut self, base_url: &str, secret: Secret) -> Result<Route, RouteError> {
        self.dialect = Dialect::Anthropic;
        self.uses = vec![
            post("/v1/messages", Asks::Answer(Wire::AnthropicMessages)),
            post(
                "/v1/messages/count_tokens",
                Asks::Free(Wire::AnthropicMessages),
            ),
        ];
        self.uses.extend(models("/v1/models"));
        self.finish(base_url, secret)
    }

    fn openai(mut self, base_url: &str, secret: Secret) -> Result<Route, RouteError> {
        self.prefix = format!("/{}/v1", self.name);
        self.dialect = Dialect::OpenAi;
        self.uses = vec![
            post("/chat/completions", Asks::Answer(Wire::OpenAiChat)),
            post("/responses", Asks::Answer(Wire::OpenAiResponses)),
            post(
                "/responses/compact",
                Asks::FixedAnswer(Wire::OpenAiResponses),
            ),
        ];
        self.uses.extend(models("/models"));
        self.finish(base_url, secret)
    }

    fn finish(self, base_url: &str, secret: Secret) -> Result<Route, RouteError> {
        let name = self.name.to_owned();
        if name.contains('/') || !is_plain(&self.prefix) {
            return Err(RouteError::Name { name });
        }
        let text = secret.expose();
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(RouteError::Secret { name });
        }
        Ok(Route {
            prefix: self.prefix,
            upstream: upstream(base_url)?,
            kind: self.kind,
            redactor: Route::redactor(&name, &secret),
            secret: Arc::new(secret),
            phantom: self.phantom,
            uses: self.uses,
            dialect: self.dialect,
            is_exclusive: self.is_exclusive,
            name,
        })
    }
}

fn post(path: &str, asks: Asks) -> Use {
    Use {
        method: Method::POST,
        path: Pattern::Exact(path.to_owned()),
        query: Query::Any,
        asks,
    }
}

/// The list of models, each of them, and whether they are there.
fn models(path: &str) -> Vec<Use> {
    let patterns = [
        Pattern::Exact(path.to_owned()),
        Pattern::NameBelow(path.to_owned()),
    ];
    let methods = [Method::GET, Method::HEAD];
    patterns
        .into_iter()
        .flat_map(|path| {
            methods.clone().map(|method| Use {
                method,
                path: path.clone(),
                query: Query::Any,
                asks: Asks::Nothing,
            })
        })
        .collect()
}

fn upstream(url: &str) -> Result<Upstream, RouteError> {
    let fails = || RouteError::Url {
        url: url.to_owned(),
    };
    let (scheme, rest) = url.split_once("://").ok_or_else(fails)?;
    let (authority, base) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let base = base.strip_suffix('/').unwrap_or(base);
    if !base.is_empty() && !is_plain(base) {
        return Err(fails());
    }
    let (scheme, port) = match scheme {
        "https" => (Scheme::HTTPS, 443),
        "http" => (Scheme::HTTP, 80),
        _ => return Err(fails()),
    };
    let endpoint = Endpoint::parse(authority, port).map_err(|reason| RouteError::Host {
        url: url.to_owned(),
        reason,
    })?;
    // A credential crosses no network in the clear.
    if scheme == Scheme::HTTP && !is_here(&endpoint.host) {
        return Err(fails());
    }
    let text = endpoint.to_string();
    let host = if matches!(endpoint.port, 80 | 443) {
        endpoint.host.to_string()
    } else {
        text.clone()
    };
    Ok(Upstream {
        place: Place {
            scheme,
            authority: Authority::try_from(text).map_err(|_| fails())?,
        },
        host: HeaderValue::try_from(host).map_err(|_| fails())?,
        endpoint,
        base: base.to_owned(),
    })
}

fn is_here(host: &Host) -> bool {
    host.name() == Some("localhost") || host.address().is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> Secret {
        Secret::new("sk-real-0123456789".to_owned())
    }

    #[test]
    fn a_credential_knows_its_place() {
        let routes = [
            Route::anthropic_key(secret()).unwrap(),
            Route::openai(secret()).unwrap(),
            Route::zai(secret()).unwrap(),
            Route::github("o", "r.git", secret()).unwrap(),
            Route::openai_compatible("local", "http://127.0.0.1:4000/", secret()).unwrap(),
        ];
        let shown = routes.map(|route| {
            let Upstream { endpoint, base, .. } = &route.upstream;
            format!("{} {} {endpoint}{base}", route.name(), route.prefix)
        });
        assert_eq!(
            shown,
            [
                "anthropic /anthropic api.anthropic.com:443",
                "openai /openai/v1 api.openai.com:443/v1",
                "zai /zai/v1 api.z.ai:443/api/paas/v4",
                "github /github github.com:443",
                "local /local/v1 127.0.0.1:4000",
            ]
        );
    }

    #[test]
    fn a_bad_one_says_why() {
        let at = |url: &str| {
            let route = Route::openai_compatible("x", url, secret());
            route.err().map(|error| error.to_string())
        };
        for (url, error) in [
            ("https://a.com/v1", None),
            ("http://localhost:4000", None),
            (
                "http://a.com/v1",
                Some(
                    "`http://a.com/v1` is not the base URL of a provider: it must be `https://host/path`",
                ),
            ),
            (
                "https://a.com/../v1",
                Some(
                    "`https://a.com/../v1` is not the base URL of a provider: it must be `https://host/path`",
                ),
            ),
            (
                "https://u@a.com",
                Some("`https://u@a.com`: the host has a character that no host name has"),
            ),
        ] {
            assert_eq!(at(url).as_deref(), error, "{url}");
        }
        let empty = Route::openai(Secret::new("a\nb".to_owned())).err();
        assert_eq!(
            empty,
            Some(RouteError::Secret {
                name: "openai".into()
            })
        );
        let name = Route::github("o/p", "r", secret()).err();
        assert_eq!(name, Some(RouteError::Name { name: "o/p".into() }));
    }
}
