//! Builds the routes for the supported providers.

use std::sync::Arc;

use hyper::Method;
use hyper::header::HeaderValue;
use hyper::http::uri::{Authority, Scheme};
use ralph_core::net::{Endpoint, Host, HostError};
use ralph_core::ports::GitCredential;
use ralph_core::repo_address::RemoteRepo;
use ralph_core::secret::Secret;

use super::path::{PathPattern, is_canonical_path};
use super::route::{
    AllowedRequest, CredentialScheme, ErrorDialect, QueryPattern, RequestBilling, RouteCredential,
    RouteUpstream, SentCredential,
};
use super::{PlaceholderToken, Route};
use crate::http::HttpOrigin;
use crate::meter::ModelWireFormat;

/// An error in the configuration of a credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// The base URL of a provider is not `https://host/path`, or `http://` to this machine.
    #[error("`{url}` is not the base URL of a provider: it must be `https://host/path`")]
    Url { url: String },
    /// The host of the base URL is invalid.
    #[error("`{url}`: the host {reason}")]
    Host { url: String, reason: HostError },
    /// The name is not a valid path segment.
    #[error("invalid name `{name}`: only letters, digits, `-`, `_`, `.`, `:` and `@` are allowed")]
    Name { name: String },
    /// The credential is empty or contains characters that are not valid in a header.
    #[error(
        "the credential `{name}` is empty or contains characters that are not valid in a header"
    )]
    Secret { name: String },
}

impl Route {
    /// Creates a route for an Anthropic API key.
    pub fn anthropic_key(secret: Secret) -> Result<Self, RouteError> {
        let placeholder = PlaceholderToken::random("sk-ant-api03-", 93, "AA");
        let builder = RouteBuilder::new("anthropic", CredentialScheme::ApiKey, placeholder);
        builder.anthropic("https://api.anthropic.com", secret)
    }

    /// Creates a route for an Anthropic login from `claude setup-token`.
    pub fn anthropic_login(secret: Secret) -> Result<Self, RouteError> {
        let placeholder = PlaceholderToken::random("sk-ant-oat01-", 93, "AA");
        let builder = RouteBuilder::new("anthropic", CredentialScheme::AnthropicLogin, placeholder);
        builder.anthropic("https://api.anthropic.com", secret)
    }

    /// Creates a route for an Anthropic-compatible provider at a base URL without `/v1`.
    pub fn anthropic_compatible(
        name: &str,
        base_url: &str,
        secret: Secret,
    ) -> Result<Self, RouteError> {
        let placeholder = PlaceholderToken::random("sk-", 48, "");
        RouteBuilder::new(name, CredentialScheme::Bearer, placeholder).anthropic(base_url, secret)
    }

    /// Creates a route for an OpenAI API key.
    pub fn openai(secret: Secret) -> Result<Self, RouteError> {
        let placeholder = PlaceholderToken::random("sk-proj-", 48, "");
        let builder = RouteBuilder::new("openai", CredentialScheme::Bearer, placeholder);
        builder.openai("https://api.openai.com/v1", secret)
    }

    /// Creates a route for an OpenAI-compatible provider at a base URL with everything before
    /// `/chat/completions`.
    pub fn openai_compatible(
        name: &str,
        base_url: &str,
        secret: Secret,
    ) -> Result<Self, RouteError> {
        let placeholder = PlaceholderToken::random("sk-", 48, "");
        RouteBuilder::new(name, CredentialScheme::Bearer, placeholder).openai(base_url, secret)
    }

    /// Creates a route for a Z.AI key.
    pub fn zai(secret: Secret) -> Result<Self, RouteError> {
        let placeholder = PlaceholderToken::random("", 32, ".ralphralphralph0");
        let builder = RouteBuilder::new("zai", CredentialScheme::Bearer, placeholder);
        builder.openai("https://api.z.ai/api/paas/v4", secret)
    }

    /// Creates a route for the credential of git on a source host that may only read these repositories. They
    /// are on the host of the first one.
    pub fn git(
        repositories: &[RemoteRepo],
        credential: Arc<dyn GitCredential>,
    ) -> Result<Self, RouteError> {
        let authority = repositories.first().map(RemoteRepo::authority);
        let base_url = format!("https://{}", authority.unwrap_or_default());
        let placeholder = PlaceholderToken::random("ghp_", 36, "");
        let mut builder = RouteBuilder::new("git", CredentialScheme::GitBasic, placeholder);
        builder.is_exclusive = false;
        builder.dialect = ErrorDialect::Plain;
        builder.allowed_requests = repositories.iter().flat_map(git_reads).collect();
        builder.build_with(&base_url, RouteCredential::Git(credential))
    }

    /// Sends the credential to another base URL.
    pub fn with_base_url(mut self, base_url: &str) -> Result<Self, RouteError> {
        self.upstream = parse_upstream(base_url)?;
        Ok(self)
    }
}

/// A route under construction.
struct RouteBuilder<'a> {
    name: &'a str,
    kind: CredentialScheme,
    placeholder: PlaceholderToken,
    prefix: String,
    dialect: ErrorDialect,
    allowed_requests: Vec<AllowedRequest>,
    is_exclusive: bool,
}

impl<'a> RouteBuilder<'a> {
    fn new(name: &'a str, kind: CredentialScheme, placeholder: PlaceholderToken) -> Self {
        Self {
            name,
            kind,
            placeholder,
            prefix: format!("/{name}"),
            dialect: ErrorDialect::Plain,
            allowed_requests: Vec::new(),
            is_exclusive: true,
        }
    }

    fn anthropic(mut self, base_url: &str, secret: Secret) -> Result<Route, RouteError> {
        self.dialect = ErrorDialect::Anthropic;
        self.allowed_requests = vec![
            post(
                "/v1/messages",
                RequestBilling::Metered(ModelWireFormat::AnthropicMessages),
            ),
            post(
                "/v1/messages/count_tokens",
                RequestBilling::Free(ModelWireFormat::AnthropicMessages),
            ),
        ];
        self.allowed_requests
            .extend(model_list_requests("/v1/models"));
        self.build(base_url, secret)
    }

    fn openai(mut self, base_url: &str, secret: Secret) -> Result<Route, RouteError> {
        self.prefix = format!("/{}/v1", self.name);
        self.dialect = ErrorDialect::OpenAi;
        self.allowed_requests = vec![
            post(
                "/chat/completions",
                RequestBilling::Metered(ModelWireFormat::OpenAiChat),
            ),
            post(
                "/responses",
                RequestBilling::Metered(ModelWireFormat::OpenAiResponses),
            ),
            post(
                "/responses/compact",
                RequestBilling::MeteredUnlimited(ModelWireFormat::OpenAiResponses),
            ),
        ];
        self.allowed_requests.extend(model_list_requests("/models"));
        self.build(base_url, secret)
    }

    fn build(self, base_url: &str, secret: Secret) -> Result<Route, RouteError> {
        let name = self.name.to_owned();
        let text = secret.expose();
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(RouteError::Secret { name });
        }
        let credential = SentCredential::new(&name, secret);
        self.build_with(base_url, RouteCredential::Fixed(credential))
    }

    fn build_with(self, base_url: &str, credential: RouteCredential) -> Result<Route, RouteError> {
        let name = self.name.to_owned();
        if name.contains('/') || !is_canonical_path(&self.prefix) {
            return Err(RouteError::Name { name });
        }
        Ok(Route {
            prefix: self.prefix,
            upstream: parse_upstream(base_url)?,
            kind: self.kind,
            credential,
            placeholder: self.placeholder,
            allowed_requests: self.allowed_requests,
            dialect: self.dialect,
            is_exclusive: self.is_exclusive,
            name,
        })
    }
}

/// Allows the requests of `git fetch` from a repository.
fn git_reads(repo: &RemoteRepo) -> [AllowedRequest; 2] {
    let path = |rest: &str| PathPattern::Exact(format!("/{}.git/{rest}", repo.full_name()));
    let read = |method, rest: &str, query| AllowedRequest {
        method,
        path: path(rest),
        query,
        billing: RequestBilling::Passthrough,
    };
    let service = QueryPattern::Exact("service=git-upload-pack");
    [
        read(Method::GET, "info/refs", service),
        read(Method::POST, "git-upload-pack", QueryPattern::None),
    ]
}

fn post(path: &str, billing: RequestBilling) -> AllowedRequest {
    AllowedRequest {
        method: Method::POST,
        path: PathPattern::Exact(path.to_owned()),
        query: QueryPattern::Any,
        billing,
    }
}

/// Allows the list of models and single models, with `GET` and `HEAD`.
fn model_list_requests(path: &str) -> Vec<AllowedRequest> {
    let patterns = [
        PathPattern::Exact(path.to_owned()),
        PathPattern::ChildOf(path.to_owned()),
    ];
    let methods = [Method::GET, Method::HEAD];
    patterns
        .into_iter()
        .flat_map(|path| {
            methods.clone().map(|method| AllowedRequest {
                method,
                path: path.clone(),
                query: QueryPattern::Any,
                billing: RequestBilling::Passthrough,
            })
        })
        .collect()
}

fn parse_upstream(url: &str) -> Result<RouteUpstream, RouteError> {
    let invalid_url = || RouteError::Url {
        url: url.to_owned(),
    };
    let (scheme, rest) = url.split_once("://").ok_or_else(invalid_url)?;
    let (authority, base) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let base = base.strip_suffix('/').unwrap_or(base);
    if !base.is_empty() && !is_canonical_path(base) {
        return Err(invalid_url());
    }
    let (scheme, default_port) = match scheme {
        "https" => (Scheme::HTTPS, 443),
        "http" => (Scheme::HTTP, 80),
        _ => return Err(invalid_url()),
    };
    let endpoint = Endpoint::parse(authority, default_port).map_err(|reason| RouteError::Host {
        url: url.to_owned(),
        reason,
    })?;
    // Credentials must not cross a network unencrypted.
    if scheme == Scheme::HTTP && !is_loopback_host(&endpoint.host) {
        return Err(invalid_url());
    }
    let text = endpoint.to_string();
    let host = if endpoint.port == default_port {
        endpoint.host.to_string()
    } else {
        text.clone()
    };
    Ok(RouteUpstream {
        origin: HttpOrigin {
            scheme,
            authority: Authority::try_from(text).map_err(|_| invalid_url())?,
        },
        host_header: HeaderValue::try_from(host).map_err(|_| invalid_url())?,
        endpoint,
        base_path: base.to_owned(),
    })
}

fn is_loopback_host(host: &Host) -> bool {
    host.name() == Some("localhost") || host.address().is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use ralph_core::ports::{GitLogin, ScmError};
    use ralph_core::repo_address::RepoAddress;

    use super::*;

    struct FixedLogin;

    #[async_trait::async_trait]
    impl GitCredential for FixedLogin {
        async fn login(&self) -> Result<GitLogin, ScmError> {
            Ok(GitLogin {
                user: "x-access-token".to_owned(),
                password: secret(),
            })
        }
    }

    fn repo(name: &str) -> RemoteRepo {
        match RepoAddress::parse(name).unwrap() {
            RepoAddress::Remote(repo) => repo,
            RepoAddress::Path(path) => panic!("{path}"),
        }
    }

    fn secret() -> Secret {
        Secret::new("sk-real-0123456789".to_owned())
    }

    #[test]
    fn each_credential_has_its_prefix_and_upstream() {
        let routes = [
            Route::anthropic_key(secret()).unwrap(),
            Route::openai(secret()).unwrap(),
            Route::zai(secret()).unwrap(),
            Route::git(&[repo("o/r"), repo("o/s")], Arc::new(FixedLogin)).unwrap(),
            Route::openai_compatible("local", "http://127.0.0.1:4000/", secret()).unwrap(),
        ];
        let shown = routes.map(|route| {
            let RouteUpstream {
                endpoint,
                base_path: base,
                ..
            } = &route.upstream;
            format!("{} {} {endpoint}{base}", route.name(), route.prefix)
        });
        assert_eq!(
            shown,
            [
                "anthropic /anthropic api.anthropic.com:443",
                "openai /openai/v1 api.openai.com:443/v1",
                "zai /zai/v1 api.z.ai:443/api/paas/v4",
                "git /git github.com:443",
                "local /local/v1 127.0.0.1:4000",
            ]
        );
    }

    #[test]
    fn the_host_header_leaves_out_only_the_default_port() {
        for (url, host) in [
            ("https://a.com:443/v1", "a.com"),
            ("https://a.com:80/v1", "a.com:80"),
            ("http://localhost:80", "localhost"),
            ("http://localhost:443", "localhost:443"),
        ] {
            let route = Route::openai_compatible("x", url, secret()).unwrap();
            assert_eq!(route.upstream.host_header, host, "{url}");
        }
    }

    #[test]
    fn invalid_routes_are_explained() {
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
                Some(
                    "`https://u@a.com`: the host has a character that is not valid in a host name",
                ),
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
        let name = Route::openai_compatible("o/p", "https://a.com", secret()).err();
        assert_eq!(name, Some(RouteError::Name { name: "o/p".into() }));
    }
}
