import { useId, type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, type TextareaHTMLAttributes } from "react";
import "./field.css";

type FieldProps = { label: string; hint?: ReactNode; error?: string | undefined };

function Frame({ label, hint, error, id, children }: FieldProps & { id: string; children: ReactNode }) {
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children}
      {hint && (
        <p className="field-hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && (
        <p className="field-error" id={`${id}-error`} role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

function described(id: string, { hint, error }: FieldProps) {
  const parts = [hint ? `${id}-hint` : "", error ? `${id}-error` : ""].filter(Boolean);
  return { "aria-describedby": parts.join(" ") || undefined, "aria-invalid": error ? true : undefined };
}

export function TextField({ label, hint, error, ...rest }: FieldProps & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId();
  return (
    <Frame {...{ label, hint, error, id }}>
      <input {...rest} id={id} className="input" {...described(id, { label, hint, error })} />
    </Frame>
  );
}

export function TextArea({ label, hint, error, ...rest }: FieldProps & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  const id = useId();
  return (
    <Frame {...{ label, hint, error, id }}>
      <textarea rows={4} {...rest} id={id} className="input" {...described(id, { label, hint, error })} />
    </Frame>
  );
}

type SelectProps = FieldProps & SelectHTMLAttributes<HTMLSelectElement> & { options: { value: string; text: string; disabled?: boolean }[] };

export function Select({ label, hint, error, options, ...rest }: SelectProps) {
  const id = useId();
  return (
    <Frame {...{ label, hint, error, id }}>
      <select {...rest} id={id} className="input" {...described(id, { label, hint, error })}>
        {options.map((option) => (
          <option key={option.value} value={option.value} disabled={option.disabled}>
            {option.text}
          </option>
        ))}
      </select>
    </Frame>
  );
}

export function Checkbox({ label, hint, ...rest }: { label: string; hint?: ReactNode } & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId();
  return (
    <div className="checkbox">
      <input {...rest} type="checkbox" id={id} />
      <label htmlFor={id}>
        {label}
        {hint && <span className="field-hint">{hint}</span>}
      </label>
    </div>
  );
}
