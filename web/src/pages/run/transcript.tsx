import type { Transcript } from "../../api/types";
import { visible, withoutColours } from "../../ui/visible";
import { Icon } from "../../ui/icon";

/** The texts, the thinking and the tools of an agent's session. */
export function TranscriptView({ transcript }: { transcript: Transcript }) {
  if (transcript.entries.length === 0) return <p className="muted">The agent has written nothing.</p>;
  return (
    <div>
      {transcript.cut && <p className="notice">Only the end of the transcript is shown. The file has all of it.</p>}
      {transcript.entries.map((entry, index) => (
        <Entry key={index} entry={entry} />
      ))}
    </div>
  );
}

function Entry({ entry }: { entry: Transcript["entries"][number] }) {
  if (entry.kind === "text") return <p className="action raw">{visible(entry.text)}</p>;
  if (entry.kind === "thinking") {
    return (
      <details className="action">
        <summary className="muted">
          <Icon name="right" />
          thinking
        </summary>
        <p className="raw muted">{visible(entry.text)}</p>
      </details>
    );
  }
  if (entry.kind === "end") return <p className={`notice ${entry.ok ? "" : "bad"} raw`}>{visible(entry.text)}</p>;
  const icon = entry.state === "failed" ? "failure" : entry.state === "running" ? "working" : "success";
  return (
    <details className="action">
      <summary>
        <Icon name={icon} />
        <span className="visually-hidden">{entry.state}</span>
        <strong>{entry.tool}</strong>
        <span className="code cut grow">{visible(entry.input)}</span>
      </summary>
      <h4 className="small">Input</h4>
      <pre className="output">{visible(entry.input)}</pre>
      {entry.output !== "" && (
        <>
          <h4 className="small">Output</h4>
          <pre className="output">{visible(withoutColours(entry.output))}</pre>
        </>
      )}
    </details>
  );
}
