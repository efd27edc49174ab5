import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { markdown } from "@codemirror/lang-markdown";
import { yamlFrontmatter } from "@codemirror/lang-yaml";
import { defaultHighlightStyle, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { linter, lintGutter, lintKeymap, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import { styleNonce } from "../shell/nonce";
import "./task-editor.css";

/** A problem of the text, at a line and column from 1. */
export type Finding = { severity: "error" | "warning"; code: string; message: string; fix?: string; line?: number; column?: number };

type EditorProps = {
  label: string;
  value: string;
  onChange: (value: string) => void;
  /** Finds the problems of a text; it is called when the user stops typing. */
  findings?: (text: string) => Promise<Finding[]>;
  /** Gets the number of errors among the findings. */
  onErrors?: (errors: number) => void;
  readOnly?: boolean;
};

/** An editor of Markdown with the findings of the linter beside their lines. */
export default function TaskEditor({ label, value, onChange, findings, onErrors, readOnly = false }: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const handlers = useRef({ onChange, findings, onErrors });
  handlers.current = { onChange, findings, onErrors };
  const editable = useRef(new Compartment());

  useEffect(() => {
    if (!host.current) return;
    const created = new EditorView({
      parent: host.current,
      doc: value,
      extensions: [
        EditorView.cspNonce.of(styleNonce),
        lineNumbers(),
        history(),
        drawSelection(),
        highlightSpecialChars(),
        highlightActiveLine(),
        highlightSelectionMatches(),
        yamlFrontmatter({ content: markdown() }),
        syntaxHighlighting(style),
        syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
        EditorView.lineWrapping,
        // A text that cannot be edited is still scrolled by keyboard.
        EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
        lintGutter(),
        linter(
          async (editor) => {
            const found = (await handlers.current.findings?.(editor.state.doc.toString())) ?? [];
            handlers.current.onErrors?.(found.filter((finding) => finding.severity === "error").length);
            return diagnostics(editor.state, found);
          },
          { delay: 400 },
        ),
        keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap, ...lintKeymap, indentWithTab]),
        editable.current.of(access(readOnly)),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) handlers.current.onChange(update.state.doc.toString());
        }),
      ],
    });
    view.current = created;
    return () => created.destroy();
    // The editor is created once; the effects below pass later values to it.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [label]);

  useEffect(() => {
    const current = view.current;
    if (current && current.state.doc.toString() !== value) {
      current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: value } });
    }
  }, [value]);

  useEffect(() => {
    view.current?.dispatch({ effects: editable.current.reconfigure(access(readOnly)) });
  }, [readOnly]);

  return <div className="editor" ref={host} />;
}

function access(readOnly: boolean) {
  return [EditorState.readOnly.of(readOnly), EditorView.editable.of(!readOnly)];
}

function diagnostics(state: EditorState, findings: Finding[]): Diagnostic[] {
  return findings.map((finding) => {
    const number = Math.min(Math.max(finding.line ?? 1, 1), state.doc.lines);
    const line = state.doc.line(number);
    const from = Math.min(line.from + Math.max((finding.column ?? 1) - 1, 0), line.to);
    return {
      from,
      to: line.to,
      severity: finding.severity,
      source: finding.code,
      message: finding.fix ? `${finding.message} — ${finding.fix}` : finding.message,
    };
  });
}

const style = HighlightStyle.define([
  { tag: tags.heading, fontWeight: "650", color: "var(--text)" },
  { tag: tags.link, color: "var(--accent-text)" },
  { tag: tags.monospace, color: "var(--accent-text)" },
  { tag: tags.strong, fontWeight: "650" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: tags.list, color: "var(--text)" },
  { tag: [tags.meta, tags.processingInstruction, tags.contentSeparator], color: "var(--text-3)" },
]);
