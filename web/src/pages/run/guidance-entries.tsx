import { guidanceEntries } from "./guidance-text";
import "./guidance.css";

/** The entries of a file of guidance, and the file as it is in the prompt. */
export function GuidanceEntries({ text, empty }: { text: string | undefined; empty: string }) {
  if (text === undefined) return <p className="muted">Loading …</p>;
  const entries = guidanceEntries(text);
  return (
    <div className="stack">
      {entries.length === 0 && <p className="muted">{empty}</p>}
      <ul className="guidance-list">
        {entries.map((entry, index) => (
          <li key={`${index} ${entry.name}`} className="stack tight">
            <strong className="raw">{entry.name}</strong>
            <dl className="small guidance-facts">
              {entry.facts.map(([term, value]) => (
                <div key={term}>
                  <dt>{term}</dt>
                  <dd className="raw">{value}</dd>
                </div>
              ))}
            </dl>
          </li>
        ))}
      </ul>
      <details>
        <summary className="small">The file, as it is in the prompt</summary>
        <pre className="output" tabIndex={0}>
          {text}
        </pre>
      </details>
    </div>
  );
}
