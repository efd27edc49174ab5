import { useMemo, useState } from "react";
import { Diff, Hunk, parseDiff, type FileData, type ViewType } from "react-diff-view";
import { Button } from "../ui/button";
import { Icon } from "../ui/icon";
import { plural } from "../ui/format";
import { plainNames } from "./quoted-names";
import "react-diff-view/style/index.css";
import "./diff-view.css";

/** Files with more changed lines are folded at first. */
const MANY_LINES = 400;

type Counted = { file: FileData; added: number; removed: number };

/** Shows a diff of git, file by file. */
export default function DiffView({ text, cut }: { text: string; cut?: boolean }) {
  const files = useMemo(() => parseDiff(plainNames(text)).map(counted), [text]);
  const [view, setView] = useState<ViewType>(window.innerWidth > 1100 ? "split" : "unified");
  const added = files.reduce((sum, file) => sum + file.added, 0);
  const removed = files.reduce((sum, file) => sum + file.removed, 0);
  if (files.length === 0) return <p className="muted">Nothing was changed.</p>;
  return (
    <div className="stack">
      <div className="row spread wrap">
        <span className="number">
          {plural(files.length, "file")}, <span className="diff-added">+{added}</span> <span className="diff-removed">−{removed}</span>
        </span>
        <div className="row">
          <Button aria-pressed={view === "unified"} onClick={() => setView("unified")}>
            Unified
          </Button>
          <Button aria-pressed={view === "split"} onClick={() => setView("split")}>
            Split
          </Button>
        </div>
      </div>
      {cut && <p className="notice warn">The diff is larger than the page shows. The rest is in the branch.</p>}
      {files.map((file, index) => (
        <FileDiff key={`${index} ${file.file.newPath}`} {...file} view={view} />
      ))}
    </div>
  );
}

function FileDiff({ file, added, removed, view }: Counted & { view: ViewType }) {
  const [open, setOpen] = useState(added + removed <= MANY_LINES);
  return (
    <section className="diff-file">
      <button type="button" className="diff-name" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name={open ? "down" : "right"} />
        <span className="code cut">{name(file)}</span>
        <span className="number small">
          <span className="diff-added">+{added}</span> <span className="diff-removed">−{removed}</span>
        </span>
      </button>
      {open && (
        <div className="diff-body" tabIndex={0} role="region" aria-label={`Changes of ${name(file)}`}>
          {file.isBinary ? (
            <p className="muted diff-binary">A binary file.</p>
          ) : (
            <Diff viewType={view} diffType={file.type} hunks={file.hunks} optimizeSelection>
              {(hunks) => hunks.map((hunk) => <Hunk key={hunk.content} hunk={hunk} />)}
            </Diff>
          )}
        </div>
      )}
    </section>
  );
}

function counted(file: FileData): Counted {
  let added = 0;
  let removed = 0;
  for (const hunk of file.hunks) {
    for (const change of hunk.changes) {
      if (change.type === "insert") added += 1;
      else if (change.type === "delete") removed += 1;
    }
  }
  return { file, added, removed };
}

function name(file: FileData): string {
  if (file.type === "delete") return `${file.oldPath} (removed)`;
  if (file.type === "add") return `${file.newPath} (new)`;
  return file.oldPath === file.newPath ? file.newPath : `${file.oldPath} → ${file.newPath}`;
}
