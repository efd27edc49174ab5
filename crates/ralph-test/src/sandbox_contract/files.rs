//! Reading, writing, listing and deleting files.

use ralph_core::path::SandboxPath;
use ralph_core::ports::{SandboxEntryKind, SandboxError, WriteMode};

use super::contract_sandbox::{ContractSandbox, repo_path};

pub(super) async fn files_round_trip(fixture: &ContractSandbox<'_>) {
    let binary: Vec<u8> = (0..=u8::MAX).cycle().take(300_000).collect();
    for bytes in [&b""[..], b"text\n", b"\0\xff\r\n", &binary] {
        fixture.write("file", bytes).await;
        let read = fixture.read("file").await.expect("the file exists");
        assert!(
            read == bytes,
            "{} bytes changed in a round trip",
            bytes.len()
        );
    }
    assert_eq!(fixture.sh("wc -c < file").await.trim(), "300000");
}

pub(super) async fn missing_directories_are_created(fixture: &ContractSandbox<'_>) {
    fixture.write("a/b/c/replaced", b"r").await;
    let path = repo_path("d/e/appended");
    let written = fixture.sandbox.write(&path, b"a", WriteMode::Append).await;
    written.expect("the file is written");
    assert_eq!(fixture.sh("cat a/b/c/replaced d/e/appended").await, "ra");
}

pub(super) async fn appending_writes_at_the_end(fixture: &ContractSandbox<'_>) {
    for chunk in ["one\n", "two\n", "", "three"] {
        let written = fixture
            .sandbox
            .write(&repo_path("log"), chunk.as_bytes(), WriteMode::Append)
            .await;
        written.expect("the file is written");
    }
    assert_eq!(fixture.sh("cat log").await, "one\ntwo\nthree");
    fixture.write("log", b"new").await;
    assert_eq!(fixture.sh("cat log").await, "new");
}

pub(super) async fn replacing_keeps_permissions(fixture: &ContractSandbox<'_>) {
    fixture
        .sh("printf '#!/bin/sh\necho old\n' > tool; chmod 755 tool")
        .await;
    fixture.write("tool", b"#!/bin/sh\necho new\n").await;
    fixture.write("plain", b"x").await;
    assert_eq!(
        fixture.sh("./tool; test -x plain || echo plain").await,
        "new\nplain\n"
    );
    fixture.sh("chmod 444 plain").await;
    fixture.write("plain", b"y").await;
    assert_eq!(
        fixture.sh("cat plain; ls -l plain | cut -c 1-10").await,
        "y-r--r--r--\n"
    );
}

pub(super) async fn a_link_inside_is_written_through(fixture: &ContractSandbox<'_>) {
    fixture
        .sh("mkdir -p d/e; echo old > d/file; ln -s d/file link; ln -s ../../new d/e/dangling; ln -s d/e dir")
        .await;
    fixture.write("link", b"replaced\n").await;
    fixture.write("dir/dangling", b"made\n").await;
    fixture.write("dir/plain", b"below\n").await;
    let link = repo_path("link");
    let appended = fixture
        .sandbox
        .write(&link, b"appended\n", WriteMode::Append);
    appended.await.expect("the file is written");
    assert_eq!(
        fixture
            .sh("cat d/file new d/e/plain; test -L link && test -L d/e/dangling && echo links")
            .await,
        "replaced\nappended\nmade\nbelow\nlinks\n"
    );
    assert_eq!(
        fixture.read("dir/dangling").await.expect("the file exists"),
        b"made\n"
    );
}

pub(super) async fn a_directory_is_listed(fixture: &ContractSandbox<'_>) {
    fixture
        .sh("printf 12345 > b; mkdir a; touch a/inner .hidden; mkfifo pipe; ln -s /nowhere link; touch 'with space é'")
        .await;
    let entries = fixture.sandbox.list(&SandboxPath::repo()).await;
    let entries = entries.expect("the directory is listed");
    let seen: Vec<(&str, SandboxEntryKind)> = entries.iter().map(|e| (&*e.name, e.kind)).collect();
    assert_eq!(
        seen,
        [
            (".hidden", SandboxEntryKind::File),
            ("a", SandboxEntryKind::Directory),
            ("b", SandboxEntryKind::File),
            ("link", SandboxEntryKind::Link),
            ("pipe", SandboxEntryKind::Special),
            ("with space é", SandboxEntryKind::File),
        ]
    );
    assert_eq!(entries[2].size, 5);
    let year_2020 = 1_577_836_800;
    assert!(entries[2].modified.as_second() > year_2020, "{entries:?}");
    let nothing = fixture.sandbox.list(&SandboxPath::scratch()).await;
    assert_eq!(nothing.expect("the directory is listed"), []);
}

pub(super) async fn deleting_removes_whole_directories(fixture: &ContractSandbox<'_>) {
    fixture
        .sh("mkdir -p d/e/f; touch d/x d/e/y d/e/f/z; ln -s d link; touch kept file; chmod 000 d/e/f; chmod 500 d/e")
        .await;
    for path in ["d", "file", "link", "never/was", "kept/below", "never"] {
        let deleted = fixture.sandbox.delete(&repo_path(path)).await;
        assert!(deleted.is_ok(), "{path}: {deleted:?}");
    }
    assert_eq!(fixture.sh("ls -A").await, "kept\n");
}

pub(super) async fn missing_files_are_named(fixture: &ContractSandbox<'_>) {
    for path in ["none", "none/below"] {
        let named = format!("repo/{path}");
        let read = fixture.read(path).await;
        assert!(
            matches!(&read, Err(SandboxError::NotFound(path)) if *path == named),
            "{read:?}"
        );
        let list = fixture.sandbox.list(&repo_path(path)).await;
        assert!(
            matches!(&list, Err(SandboxError::NotFound(path)) if *path == named),
            "{list:?}"
        );
    }
}

pub(super) async fn a_file_is_read_only_up_to_the_limit(fixture: &ContractSandbox<'_>) {
    fixture.sh("head -c 1000 /dev/zero > file; dd if=/dev/zero of=huge bs=1 count=1 seek=1073741823 2>&1").await;
    let read = fixture.sandbox.read(&repo_path("file"), 1000).await;
    assert_eq!(read.expect("it fits").len(), 1000);
    for (path, size, limit) in [
        ("file", 1000, 999),
        ("file", 1000, 0),
        ("huge", 1 << 30, 1 << 20),
    ] {
        let read = fixture.sandbox.read(&repo_path(path), limit).await;
        assert!(
            matches!(&read, Err(SandboxError::TooLarge { size: s, limit: l, .. }) if (*s, *l) == (size, limit)),
            "{path} with limit {limit}: {read:?}"
        );
    }
}

pub(super) async fn syncing_keeps_written_files(fixture: &ContractSandbox<'_>) {
    fixture.sh("echo command > file").await;
    fixture.sandbox.sync().await.expect("the sandbox is synced");
    assert_eq!(fixture.sh("cat file").await, "command\n");
    fixture
        .sandbox
        .remove()
        .await
        .expect("the sandbox is removed");
    match fixture.sandbox.sync().await {
        Ok(()) | Err(SandboxError::Gone(_)) => {}
        Err(error) => panic!("a removed sandbox has nothing to sync: {error}"),
    }
}
