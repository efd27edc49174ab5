import type { ReactNode } from "react";
import { Icon, type IconName } from "./icon";
import "./card.css";

type CardProps = { title?: ReactNode; aside?: ReactNode; children: ReactNode; className?: string; id?: string };

/** A titled part of a page. */
export function Card({ title, aside, children, className, id }: CardProps) {
  return (
    <section className={`card ${className ?? ""}`} id={id}>
      {(title || aside) && (
        <header className="card-header">
          {title && <h2>{title}</h2>}
          {aside && <div className="row">{aside}</div>}
        </header>
      )}
      <div className="card-body">{children}</div>
    </section>
  );
}

type EmptyProps = { icon: IconName; title: string; children?: ReactNode };

/** What a list shows while it has no entry. */
export function Empty({ icon, title, children }: EmptyProps) {
  return (
    <div className="empty">
      <Icon name={icon} size={28} />
      <p className="empty-title">{title}</p>
      {children && <div className="muted stack tight">{children}</div>}
    </div>
  );
}

/** Terms with their values. */
export function Facts({ facts }: { facts: [string, ReactNode][] }) {
  return (
    <dl className="facts">
      {facts.map(([term, value]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
