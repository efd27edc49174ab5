use super::*;

#[test]
fn another_directory_has_its_own_dotenv_and_the_same_state_directory() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(
        here.path().join(".env"),
        "ONE_API_KEY=here\nTWO_API_KEY=here\n",
    )
    .unwrap();
    std::fs::write(there.path().join(".env"), "ONE_API_KEY=there\n").unwrap();
    let variables = [("RALPH_HOME", "state"), ("THREE_API_KEY", "real")]
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let first = Environment::new(variables, here.path().to_owned());
    let second = first.in_directory(there.path());
    let keys = ["ONE_API_KEY", "TWO_API_KEY", "THREE_API_KEY"];
    assert_eq!(
        keys.map(|name| second.credential(name)),
        [Some("there"), None, Some("real")]
    );
    assert_eq!(second.state_dir(), Ok(here.path().join("state")));
    assert_eq!(second.working_dir(), there.path());
}

#[test]
fn the_state_directory_comes_from_the_nearest_setting() {
    for (variables, expected) in [
        (vec![("RALPH_HOME", "/r"), ("HOME", "/h")], Ok("/r")),
        (vec![("RALPH_HOME", "r"), ("HOME", "/h")], Ok("/r")),
        (
            vec![("RALPH_HOME", ""), ("XDG_STATE_HOME", "/x"), ("HOME", "/h")],
            Ok("/x/ralph"),
        ),
        (
            vec![("XDG_STATE_HOME", "relative"), ("HOME", "/h")],
            Ok("/h/.local/state/ralph"),
        ),
        (vec![("HOME", "/h")], Ok("/h/.local/state/ralph")),
        (vec![], Err(NoStateDirError)),
    ] {
        let found = Environment::for_test(&variables).state_dir();
        assert_eq!(found, expected.map(PathBuf::from), "{variables:?}");
    }
}

#[test]
fn a_dotenv_adds_settings_and_credentials_and_nothing_else() {
    let dotenv = "RALPH_HOME=/evil\nPATH=/evil\nHOME=/evil\nHTTPS_PROXY=http://evil\nDOCKER_HOST=tcp://evil\n\
                  RALPH_DEFAULT_PROVIDER=docker\nRALPH_DEFAULT_MODEL_PROFILE=cheap\n\
                  ZAI_API_KEY=from-dotenv\nOPENAI_API_KEY=from-dotenv\n";
    let real = [
        ("OPENAI_API_KEY", "from-the-shell"),
        ("RALPH_DEFAULT_PROVIDER", "local"),
    ]
    .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let environment = Environment::from_variables(real, PathBuf::from("/p"), dotenv);
    let variables: Vec<(&str, &str)> = environment
        .variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        variables,
        [
            ("OPENAI_API_KEY", "from-the-shell"),
            ("RALPH_DEFAULT_MODEL_PROFILE", "cheap"),
            ("RALPH_DEFAULT_PROVIDER", "local"),
            ("ZAI_API_KEY", "from-dotenv"),
        ]
    );
    assert_eq!(environment.state_dir(), Err(NoStateDirError));
    assert_eq!(environment.config_dir(), None);
    assert_eq!(environment.user_provider(), Some("local"));
    assert!(!format!("{environment:?}").contains("from-dotenv"));
}

#[test]
fn a_provider_of_a_dotenv_is_not_the_users() {
    let dotenv = "RALPH_DEFAULT_PROVIDER=local\nRALPH_CONFIG_DIR=/evil\nXDG_CONFIG_HOME=/evil\n";
    let environment = Environment::from_variables([], PathBuf::from("/p"), dotenv);
    assert_eq!(environment.default_provider(), Some("local"));
    assert_eq!(environment.user_provider(), None);
    assert_eq!(environment.config_dir(), None);
}

#[test]
fn a_dotenv_cannot_set_an_api_address() {
    let dotenv = "AUTH_API_BASE=http://evil\nTOKEN_BASE_URL=http://evil\n";
    let real = [("TOKEN_BASE_URL", "http://real")]
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let environment = Environment::from_variables(real, PathBuf::from("/p"), dotenv);
    assert_eq!(environment.api_address("AUTH_API_BASE"), None);
    assert_eq!(
        environment.api_address("TOKEN_BASE_URL"),
        Some("http://real")
    );
}

#[test]
fn the_users_configuration_directory_comes_from_the_nearest_setting() {
    for (variables, expected) in [
        (vec![("RALPH_CONFIG_DIR", "/c"), ("HOME", "/h")], Some("/c")),
        (
            vec![("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")],
            Some("/x/ralph"),
        ),
        (
            vec![("XDG_CONFIG_HOME", "relative"), ("HOME", "/h")],
            Some("/h/.config/ralph"),
        ),
        (vec![], None),
    ] {
        let found = Environment::for_test(&variables).config_dir();
        assert_eq!(found, expected.map(PathBuf::from), "{variables:?}");
    }
}

#[test]
fn secrets_are_known_by_their_names() {
    for name in [
        "ANTHROPIC_API_KEY",
        "OPENAI_APIKEY",
        "GITHUB_PAT",
        "GH_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "MYSQL_PASSWD",
        "GOOGLE_CREDENTIALS",
        "GITHUB_APP_PRIVATE_KEY_PEM",
        "NPM_AUTH",
        "HTTP_AUTHORIZATION",
        "npm_config__authToken",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in [
        "PATH",
        "HOME",
        "SSH_AUTH_SOCK",
        "KEYBOARD",
        "PATTERN",
        "XAUTHORITY",
        "TOKEN_FILE",
        "AUTHOR",
        "GITHUB_APP_ID",
    ] {
        assert!(!is_secret_name(name), "{name}");
    }
    let environment = Environment::for_test(&[
        ("A_KEY", "short"),
        ("B_KEY", "long enough"),
        ("EMPTY_KEY", " "),
        ("NOTHING", "long enough"),
    ]);
    let secrets = [("A_KEY", "short"), ("B_KEY", "long enough")];
    let secrets = secrets.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(environment.secrets(), secrets);
    assert_eq!(environment.credential("A_KEY"), Some("short"));
    assert_eq!(environment.credential("NOTHING"), None);
}

#[test]
fn git_gets_proxies_and_certificates_and_nothing_of_a_dotenv() {
    let own = [
        ("HTTPS_PROXY", "http://proxy:3128"),
        ("no_proxy", "localhost"),
        ("SSL_CERT_FILE", "authority.pem"),
        ("GITHUB_PAT", "canary"),
    ];
    let own = own.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let dotenv = "http_proxy=http://evil\nSSL_CERT_DIR=/evil\n";
    let environment = Environment::from_variables(own, "/work".into(), dotenv);
    let variables = environment.transport_variables();
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        variables,
        [
            ("GIT_SSL_CAINFO", "/work/authority.pem"),
            ("HTTPS_PROXY", "http://proxy:3128"),
            ("SSL_CERT_FILE", "/work/authority.pem"),
            ("no_proxy", "localhost"),
        ]
    );
}

#[test]
fn another_state_directory_has_its_own_index() {
    let variables = [
        ("RALPH_HOME", "/user/state"),
        ("RALPH_DB_URL", "sqlite:///user/index.db"),
        ("RALPH_CONFIG_DIR", "/user/config"),
    ];
    let environment = Environment::for_test(&variables).with_state_dir("/demo/state");
    assert_eq!(environment.state_dir(), Ok(PathBuf::from("/demo/state")));
    assert_eq!(environment.database_url(), None);
    assert_eq!(
        environment.config_dir(),
        Some(PathBuf::from("/user/config"))
    );
}
