//! Damaged and unrelated files among the records.

use super::*;

#[tokio::test]
async fn other_files_are_ignored() {
    let fixture = ScmFixture::new();
    let scm = fixture.scm();
    scm.open(&draft("r1", "a")).await.unwrap();
    let directory = fixture.store_directory();
    // Remains of a process killed during a write, and other stray files.
    for name in [
        "next.tmp",
        "2.json.tmp",
        "+2.json",
        "02.json",
        "x.json",
        ".json",
        "2",
    ] {
        std::fs::write(directory.join(name), "{\"v\": 1, \"num").unwrap();
    }
    assert_eq!(scm.find("a").await.unwrap().unwrap().number, 1);
    assert_eq!(scm.open(&draft("r1", "b")).await.unwrap().number, 2);
    assert!(!directory.join("next.tmp").exists());
    assert_eq!(
        LocalScm::read_record(&directory.join("2.json"))
            .unwrap()
            .head,
        "b"
    );
}

#[tokio::test]
async fn a_damaged_record_is_an_error_and_nothing_is_opened() {
    let fixture = ScmFixture::new();
    let scm = fixture.scm();
    scm.open(&draft("r1", "a")).await.unwrap();
    let path = fixture.store_directory().join("1.json");
    let good = std::fs::read_to_string(&path).unwrap();
    let repo = fixture.repo().display().to_string();
    let cases = [
        (
            String::new(),
            "EOF while parsing a value at line 1 column 0".to_owned(),
        ),
        (
            good.replace("\"v\": 1", "\"v\": 2"),
            "its format version is 2, but only 1 is supported".to_owned(),
        ),
        (
            good.replace("\"number\": 1", "\"number\": 2"),
            "its number 2 does not match the file name".to_owned(),
        ),
        (
            good.replace(&"a".repeat(40), "HEAD"),
            "`HEAD` is not a commit id".to_owned(),
        ),
        (
            good.replace(&repo, "/elsewhere"),
            "it belongs to repository `/elsewhere`".to_owned(),
        ),
        (
            " ".repeat(4 << 20) + &good,
            "it has more than 4194304 bytes".to_owned(),
        ),
    ];
    for (text, why) in cases {
        std::fs::write(&path, text).unwrap();
        let expected = format!("pull request record `STORE/1.json` is damaged: {why}");
        for error in [
            scm.find("a").await.unwrap_err(),
            scm.open(&draft("r2", "b")).await.unwrap_err(),
            scm.update(1, &draft("r1", "a")).await.unwrap_err(),
        ] {
            assert_eq!(fixture.redact_paths(&error), expected);
        }
        assert_eq!(record_names(&fixture.store_directory()), ["1.json"]);
    }
}

#[tokio::test]
async fn a_record_over_the_limit_is_not_written() {
    let fixture = ScmFixture::new();
    let large = PullDraft {
        body: "x".repeat(4 << 20),
        ..draft("r1", "a")
    };
    let error = fixture.redact_paths(&fixture.scm().open(&large).await.unwrap_err());
    let start = "cannot write pull request record `STORE/1.json`: it has 41";
    assert!(error.starts_with(start), "{error}");
    assert!(
        error.ends_with(" bytes, at most 4194304 are allowed"),
        "{error}"
    );
    assert_eq!(record_names(&fixture.store_directory()), [""; 0]);
}
