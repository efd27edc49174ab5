import type { ButtonHTMLAttributes, ReactNode } from "react";
import { Icon, type IconName } from "./icon";
import { Tip } from "./tip";
import "./button.css";

type ButtonProps = Omit<ButtonHTMLAttributes<HTMLButtonElement>, "disabled"> & {
  kind?: "primary" | "plain" | "quiet" | "danger";
  icon?: IconName;
  busy?: boolean;
  /** Why the button cannot be used now. It stays focusable, so that the reason can be read. */
  forbidden?: string | undefined;
  children?: ReactNode;
};

/** A button. A forbidden one keeps its place and gives its reason. */
export function Button({ kind = "plain", icon, busy, forbidden, children, onClick, className, ...rest }: ButtonProps) {
  const unusable = busy || forbidden !== undefined;
  const button = (
    <button
      type="button"
      {...rest}
      className={`button ${kind} ${children ? "" : "bare"} ${className ?? ""}`}
      aria-disabled={unusable || undefined}
      aria-busy={busy || undefined}
      onClick={(event) => {
        if (unusable) event.preventDefault();
        else onClick?.(event);
      }}
    >
      {busy ? <span className="spinner" aria-hidden="true" /> : icon && <Icon name={icon} />}
      {children}
    </button>
  );
  return forbidden === undefined ? button : <Tip text={forbidden}>{button}</Tip>;
}
