use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use ralph_core::id::CommitId;
use ralph_core::ports::PullState;
use ralph_test::{TestClock, create_repository, git};

use super::*;

mod damage;
mod processes;
mod pushing;

const MORNING: &str = "2026-03-01T08:00:00Z";
const EVENING: &str = "2026-03-01T20:00:00Z";

fn git_program() -> GitProgram {
    GitProgram {
        program: "git".into(),
        path: std::env::var_os("PATH").unwrap(),
        config: "/dev/null".into(),
    }
}

/// A directory with a repository `repo` (one commit on `main`) and the records `state/pulls`.
struct ScmFixture(tempfile::TempDir);

impl ScmFixture {
    fn new() -> Self {
        let fixture = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(fixture.root().join("repo")).unwrap();
        create_repository(&fixture.repo());
        fixture
    }

    fn root(&self) -> &Path {
        self.0.path()
    }

    fn repo(&self) -> PathBuf {
        self.root().join("repo").canonicalize().unwrap()
    }

    fn records(&self) -> PathBuf {
        self.root().join("state/pulls")
    }

    fn scm_at(&self, repo: &Path, time: &str) -> LocalScm {
        let clock = TestClock::at(time);
        LocalScm::new(&self.records(), repo, git_program(), clock).unwrap()
    }

    fn scm(&self) -> LocalScm {
        self.scm_at(&self.repo(), MORNING)
    }

    /// Returns the directory of the repository's records.
    fn store_directory(&self) -> PathBuf {
        self.scm().store.directory
    }

    /// Returns an error's text with the fixture path replaced by `P` and the store by `STORE`.
    fn redact_paths(&self, error: &ScmError) -> String {
        let directory = self.store_directory().display().to_string();
        let root = self.root().canonicalize().unwrap().display().to_string();
        error
            .to_string()
            .replace(&directory, "STORE")
            .replace(&root, "P")
    }
}

fn draft(run: &str, head: &str) -> PullDraft {
    PullDraft {
        run: run.into(),
        head: head.into(),
        base: "main".into(),
        commit: CommitId::parse(&"a".repeat(40)).unwrap(),
        title: "Fix it".into(),
        body: "<!-- ralph:run -->\n- [x] done\n".into(),
        labels: vec!["ralph".into()],
        state: PullState::Draft,
    }
}

/// Returns the names of the records, sorted by number.
fn record_names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| Path::new(name).extension() == Some("json".as_ref()))
        .collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    names
}

#[tokio::test]
async fn a_pull_request_is_a_private_file() {
    let fixture = ScmFixture::new();
    let scm = fixture.scm();
    assert_eq!(scm.name(), "local");
    assert_eq!(scm.remote(), fixture.repo().to_str().unwrap());
    assert_eq!(scm.find("ralph/a").await.unwrap(), None);
    assert!(!fixture.root().join("state").exists());

    let opened = scm.open(&draft("r1", "ralph/a")).await.unwrap();
    let path = fixture.store_directory().join("1.json");
    let expected = PullRequest {
        number: 1,
        url: format!("file://{}", path.display()),
        state: PullState::Draft,
        head: CommitId::parse(&"a".repeat(40)).unwrap(),
    };
    assert_eq!(opened, expected);
    assert_eq!(scm.find("ralph/a").await.unwrap(), Some(expected));
    assert_eq!(scm.find("ralph/b").await.unwrap(), None);

    let text = std::fs::read_to_string(&path).unwrap();
    let seen: serde_json::Value = serde_json::from_str(&text).unwrap();
    let wanted = serde_json::json!({
        "v": 1, "number": 1, "repo": fixture.repo(), "run": "r1", "head": "ralph/a", "base": "main",
        "commit": "a".repeat(40), "title": "Fix it", "body": "<!-- ralph:run -->\n- [x] done\n",
        "labels": ["ralph"], "state": "draft", "opened_at": MORNING, "updated_at": MORNING,
    });
    assert_eq!(seen, wanted);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    for directory in [
        fixture.store_directory(),
        fixture.records(),
        fixture.root().join("state"),
    ] {
        assert_eq!(mode(&directory), 0o700);
    }
    let digest = Digest::compute(fixture.repo().to_str().unwrap().as_bytes());
    assert_eq!(
        fixture.store_directory(),
        fixture.records().join(&digest.as_str()[..16])
    );
}

#[tokio::test]
async fn a_url_resolves_to_its_record() {
    let fixture = ScmFixture::new();
    let records = fixture.root().join("Application Support");
    let clock = TestClock::at(MORNING);
    let scm = LocalScm::new(&records, &fixture.repo(), git_program(), clock).unwrap();
    let opened = scm.open(&draft("r1", "ralph/a")).await.unwrap();
    assert!(
        opened.url.contains("/Application%20Support/"),
        "{}",
        opened.url
    );
    let record = LocalScm::read_record(&LocalScm::record_path(&opened.url).unwrap()).unwrap();
    assert_eq!(
        record,
        PullRecord::new(
            1,
            scm.remote(),
            &draft("r1", "ralph/a"),
            MORNING.parse().unwrap()
        )
    );
}

#[tokio::test]
async fn a_run_opens_one_pull_request_per_branch() {
    let fixture = ScmFixture::new();
    let morning = fixture.scm();
    let evening = fixture.scm_at(&fixture.repo(), EVENING);
    let number = async |scm: &LocalScm, run: &str, head: &str| {
        scm.open(&draft(run, head)).await.unwrap().number
    };
    assert_eq!(number(&morning, "r1", "a").await, 1);
    assert_eq!(number(&morning, "r1", "b").await, 2);
    assert_eq!(number(&morning, "r2", "a").await, 3);
    let path = fixture.store_directory().join("1.json");
    let before = std::fs::read(&path).unwrap();
    // Reopening without changes does not modify the record.
    assert_eq!(number(&evening, "r1", "a").await, 1);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    // The newest pull request of a branch is returned.
    assert_eq!(morning.find("a").await.unwrap().unwrap().number, 3);

    let changed = PullDraft {
        commit: CommitId::parse(&"b".repeat(40)).unwrap(),
        title: "Better".into(),
        state: PullState::Open,
        labels: Vec::new(),
        base: "develop".into(),
        body: String::new(),
        ..draft("r1", "a")
    };
    let opened = evening.open(&changed).await.unwrap();
    assert_eq!((opened.number, opened.state), (1, PullState::Open));
    assert_eq!(opened.head, changed.commit);
    let wanted = PullRecord {
        opened_at: MORNING.parse().unwrap(),
        ..PullRecord::new(1, morning.remote(), &changed, EVENING.parse().unwrap())
    };
    assert_eq!(LocalScm::read_record(&path).unwrap(), wanted);
    assert_eq!(
        record_names(&fixture.store_directory()),
        ["1.json", "2.json", "3.json"]
    );
}

#[tokio::test]
async fn an_update_changes_its_own_pull_request_only() {
    let fixture = ScmFixture::new();
    fixture.scm().open(&draft("r1", "a")).await.unwrap();
    let evening = fixture.scm_at(&fixture.repo(), EVENING);
    let ready = PullDraft {
        state: PullState::Open,
        ..draft("r1", "a")
    };
    let updated = evening.update(1, &ready).await.unwrap();
    assert_eq!((updated.number, updated.state), (1, PullState::Open));
    let wanted = PullRecord {
        opened_at: MORNING.parse().unwrap(),
        ..PullRecord::new(1, evening.remote(), &ready, EVENING.parse().unwrap())
    };
    let path = fixture.store_directory().join("1.json");
    assert_eq!(LocalScm::read_record(&path).unwrap(), wanted);

    let foreign = evening.update(1, &draft("r2", "a")).await.unwrap_err();
    assert_eq!(
        fixture.redact_paths(&foreign),
        "cannot update pull request 1 for run `r2` and branch `a`: it belongs to run `r1` and branch `a`"
    );
    let missing = evening.update(7, &ready).await.unwrap_err();
    assert_eq!(
        fixture.redact_paths(&missing),
        "cannot read pull request record `STORE/7.json`: No such file or directory (os error 2)"
    );
    assert_eq!(LocalScm::read_record(&path).unwrap(), wanted);
    assert_eq!(record_names(&fixture.store_directory()), ["1.json"]);
}

#[tokio::test]
async fn repositories_are_numbered_separately_whatever_path_names_them() {
    let fixture = ScmFixture::new();
    git(fixture.root(), &["init", "-q", "--bare", "other.git"]);
    std::os::unix::fs::symlink(fixture.repo(), fixture.root().join("link")).unwrap();
    let link = fixture.scm_at(&fixture.root().join("link"), MORNING);
    let other = fixture.scm_at(&fixture.root().join("other.git"), MORNING);
    assert_eq!(
        fixture.scm().open(&draft("r1", "a")).await.unwrap().number,
        1
    );
    assert_eq!(link.open(&draft("r1", "b")).await.unwrap().number, 2);
    assert_eq!(link.remote(), fixture.repo().to_str().unwrap());
    assert_eq!(other.open(&draft("r1", "a")).await.unwrap().number, 1);
    assert_eq!(other.find("b").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_tasks_get_distinct_numbers() {
    let fixture = ScmFixture::new();
    let scm = Arc::new(fixture.scm());
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..24 {
        let scm = Arc::clone(&scm);
        // Every pull request is requested twice.
        let draft = draft("r1", &format!("branch-{}", index / 2));
        tasks.spawn(async move { (draft.head.clone(), scm.open(&draft).await.unwrap().number) });
    }
    let mut seen = std::collections::BTreeSet::new();
    while let Some(opened) = tasks.join_next().await {
        seen.insert(opened.unwrap());
    }
    let mut given: Vec<u64> = seen.iter().map(|(_, number)| *number).collect();
    given.sort_unstable();
    assert_eq!(given, (1..=12).collect::<Vec<u64>>());
    assert_eq!(record_names(&fixture.store_directory()).len(), 12);
}

#[tokio::test]
async fn only_another_commit_opens_a_merged_pull_request_again() {
    let fixture = ScmFixture::new();
    let scm = fixture.scm();
    scm.open(&draft("r1", "a")).await.unwrap();
    let merged = scm.set_state(1, PullState::Merged).await.unwrap();
    assert_eq!(merged.state, PullState::Merged);
    let again = scm.update(1, &draft("r1", "a")).await.unwrap();
    assert_eq!(again.state, PullState::Merged);
    let further = PullDraft {
        commit: CommitId::parse(&"b".repeat(40)).unwrap(),
        ..draft("r1", "a")
    };
    let opened = scm.update(1, &further).await.unwrap();
    assert_eq!(opened.state, PullState::Draft);
    assert!(scm.set_state(7, PullState::Closed).await.is_err());
}
