//! Untrusted certificates: retrying does not resolve these.

use ralph_core::ports::ModelError;
use ralph_core::profile::WireApi;
use ralph_providers::model::http::HttpModel;
use ralph_test::{FakeCertificate, FakeModelApi, FakeResponse};

use super::{KEY, ask, settings};

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_a_wrong_setting() {
    let certificate = FakeCertificate::new("127.0.0.1");
    let api = FakeModelApi::start_tls([FakeResponse::json(200, "{}")], &certificate).unwrap();
    let host = api.url().replace("https://", "");
    let settings = settings("acme/one", WireApi::Chat, &api.url(), KEY);
    let error = ask(&HttpModel::new(settings).unwrap()).await.unwrap_err();
    let ModelError::Broken { message, fix, .. } = error else {
        panic!("{error:?}");
    };
    let expected = format!(
        "the certificate of `{host}` is signed by an authority that this machine does not trust"
    );
    assert_eq!(message, expected);
    assert!(fix.unwrap().contains("`SSL_CERT_FILE`"));
    assert_eq!(api.received(), []);
}
