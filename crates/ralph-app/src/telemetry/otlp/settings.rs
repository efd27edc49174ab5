//! The standard variables of OpenTelemetry.

use std::collections::BTreeMap;
use std::time::Duration;

use ralph_core::parse_value;
use ralph_core::secret::Secret;
use ralph_providers::http::ProxySettings;

use crate::config::Environment;
use crate::error::AppError;

/// The time limit of a request, if the environment sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval of metrics, if the environment sets none.
const DEFAULT_INTERVAL: Duration = Duration::from_mins(1);

/// The longest accepted time.
const MAX_MILLISECONDS: u64 = 24 * 3600 * 1000;

/// The most headers and attributes.
const MAX_PAIRS: usize = 64;

/// The settings of the export.
#[derive(Debug)]
pub struct OtlpSettings {
    /// The address for spans; `None` sends none.
    pub traces: Option<String>,
    /// The address for metrics; `None` sends none.
    pub metrics: Option<String>,
    /// The headers of each request, which may contain a credential.
    pub headers: Vec<(String, Secret)>,
    /// The attributes of this process, sorted by key.
    pub resource: BTreeMap<String, String>,
    pub timeout: Duration,
    /// The time between two requests with metrics.
    pub interval: Duration,
    pub network: ProxySettings,
}

impl OtlpSettings {
    /// Reads the settings. Returns `None` if no collector is configured, or the export is switched off.
    pub fn from_environment(
        environment: &Environment,
        network: ProxySettings,
    ) -> Result<Option<Self>, AppError> {
        let reader = VariableReader(environment);
        if reader
            .get("OTEL_SDK_DISABLED")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
        {
            return Ok(None);
        }
        let traces = reader.endpoint("TRACES", "traces")?;
        let metrics = reader.endpoint("METRICS", "metrics")?;
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        reader.require("OTEL_EXPORTER_OTLP_COMPRESSION", &["none"])?;
        for name in [
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
        ] {
            reader.require(name, &["http/json"])?;
        }
        let mut resource = reader.pairs("OTEL_RESOURCE_ATTRIBUTES")?;
        resource.push((
            "service.version".to_owned(),
            env!("CARGO_PKG_VERSION").to_owned(),
        ));
        let mut resource: BTreeMap<String, String> = resource.into_iter().collect();
        if let Some(name) = reader.get("OTEL_SERVICE_NAME") {
            resource.insert("service.name".to_owned(), name.to_owned());
        }
        resource
            .entry("service.name".to_owned())
            .or_insert_with(|| "ralph".to_owned());
        let headers = reader.pairs("OTEL_EXPORTER_OTLP_HEADERS")?;
        let headers = headers
            .into_iter()
            .map(|(name, value)| (name, Secret::new(value)));
        Ok(Some(Self {
            traces,
            metrics,
            headers: headers.collect(),
            resource,
            timeout: reader.time("OTEL_EXPORTER_OTLP_TIMEOUT", DEFAULT_TIMEOUT)?,
            interval: reader.time("OTEL_METRIC_EXPORT_INTERVAL", DEFAULT_INTERVAL)?,
            network,
        }))
    }
}

/// Reads variables of the process; a `.env` cannot set them.
struct VariableReader<'a>(&'a Environment);

impl<'a> VariableReader<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.otel_variable(name)
    }

    /// Returns the address for a signal.
    fn endpoint(&self, signal: &str, path: &str) -> Result<Option<String>, AppError> {
        let exporter = format!("OTEL_{signal}_EXPORTER");
        self.require(&exporter, &["otlp", "none"])?;
        if self.get(&exporter) == Some("none") {
            return Ok(None);
        }
        let own = format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT");
        let common = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let (name, address) = match (self.get(&own), self.get(common)) {
            (Some(address), _) => (own.as_str(), address.to_owned()),
            (None, Some(base)) => {
                let base = base.trim_end_matches('/');
                (common, format!("{base}/v1/{path}"))
            }
            (None, None) => return Ok(None),
        };
        let is_http = url::Url::parse(&address)
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        if !is_http {
            let why = "it is not an http or https address";
            return Err(invalid(
                name,
                why,
                "name the address of a collector, such as http://127.0.0.1:4318",
            ));
        }
        Ok(Some(address))
    }

    /// Rejects a value that ralph does not implement.
    fn require(&self, name: &str, supported: &[&str]) -> Result<(), AppError> {
        match self.get(name) {
            Some(value) if !supported.contains(&value) => {
                let why = format!("`{value}` is not supported");
                let fix = format!("set it to `{}`, or unset it", supported.join("` or `"));
                Err(invalid(name, &why, &fix))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn time(&self, name: &str, default: Duration) -> Result<Duration, AppError> {
        let Some(text) = self.get(name) else {
            return Ok(default);
        };
        let milliseconds = parse_value::<u64>(text);
        let milliseconds = milliseconds.filter(|time| (1..=MAX_MILLISECONDS).contains(time));
        milliseconds.map(Duration::from_millis).ok_or_else(|| {
            let why = format!("`{text}` is not a number of milliseconds up to a day");
            invalid(name, &why, "correct or unset it")
        })
    }

    /// Parses `key=value` pairs, separated by commas and percent-encoded.
    fn pairs(&self, name: &str) -> Result<Vec<(String, String)>, AppError> {
        let mut pairs = Vec::new();
        for pair in self.get(name).unwrap_or_default().split(',') {
            let pair = pair.trim();
            if pair.is_empty() {
                continue;
            }
            // The message does not repeat the pair, which may contain a credential.
            let Some((key, value)) = pair
                .split_once('=')
                .filter(|(key, _)| !key.trim().is_empty())
            else {
                return Err(invalid(
                    name,
                    "a pair is not `key=value`",
                    "correct or unset it",
                ));
            };
            pairs.push((decode(key.trim()), decode(value.trim())));
        }
        if pairs.len() > MAX_PAIRS {
            let why = format!("it has more than {MAX_PAIRS} pairs");
            return Err(invalid(name, &why, "shorten it"));
        }
        Ok(pairs)
    }
}

/// Decodes `%20`; an incomplete code stays as it is.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 3).and_then(hex_byte);
        match (bytes[at], code) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 3;
            }
            (byte, _) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let value = digit(digits[0])? * 16 + digit(digits[1])?;
    Some(u8::try_from(value).unwrap_or(u8::MAX))
}

fn invalid(name: &str, why: &str, fix: &str) -> AppError {
    AppError::usage(format!("cannot use `{name}`"), why, fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<Option<OtlpSettings>, AppError> {
        let environment = Environment::for_test(variables);
        OtlpSettings::from_environment(&environment, ProxySettings::default())
    }

    #[test]
    fn the_standard_variables_are_read() {
        let read = settings(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/base/"),
            (
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
                "https://metrics.example/in",
            ),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Bearer%20abc, x-a=1",
            ),
            ("OTEL_RESOURCE_ATTRIBUTES", "team=blue,service.name=other"),
            ("OTEL_SERVICE_NAME", "mine"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "500"),
        ]);
        let read = read.unwrap().unwrap();
        assert_eq!(
            read.traces.as_deref(),
            Some("http://127.0.0.1:4318/base/v1/traces")
        );
        assert_eq!(read.metrics.as_deref(), Some("https://metrics.example/in"));
        let headers: Vec<_> = read
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.expose()))
            .collect();
        assert_eq!(headers, [("authorization", "Bearer abc"), ("x-a", "1")]);
        assert_eq!(read.resource["service.name"], "mine");
        assert_eq!(read.resource["team"], "blue");
        assert_eq!(read.timeout, Duration::from_millis(500));
    }

    #[test]
    fn without_a_collector_nothing_is_exported() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        for variables in [
            vec![],
            vec![endpoint, ("OTEL_SDK_DISABLED", "true")],
            vec![
                endpoint,
                ("OTEL_TRACES_EXPORTER", "none"),
                ("OTEL_METRICS_EXPORTER", "none"),
            ],
        ] {
            assert!(settings(&variables).unwrap().is_none(), "{variables:?}");
        }
    }

    #[test]
    fn unsupported_values_are_rejected_by_name() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
            ("OTEL_TRACES_EXPORTER", "zipkin"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "secret-without-equals"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4318"),
        ] {
            let error = settings(&[endpoint, (name, value)]).unwrap_err();
            assert_eq!(error.what, format!("cannot use `{name}`"));
            assert!(!error.to_string().contains("secret-without"), "{error}");
        }
    }
}
