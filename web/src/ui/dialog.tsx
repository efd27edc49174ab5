import { Dialog as Primitive } from "radix-ui";
import type { ReactNode } from "react";
import { Button } from "./button";
import "./dialog.css";

type DialogProps = {
  open: boolean;
  onClose: () => void;
  title: string;
  description?: ReactNode;
  children: ReactNode;
  wide?: boolean;
};

/** A dialog above the page; Escape and the button close it. */
export function Dialog({ open, onClose, title, description, children, wide }: DialogProps) {
  return (
    <Primitive.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Primitive.Portal>
        <Primitive.Overlay className="dialog-backdrop" />
        <Primitive.Content className={`dialog ${wide ? "wide" : ""}`} {...(description ? {} : { "aria-describedby": undefined })}>
          <div className="row spread">
            <Primitive.Title className="dialog-title">{title}</Primitive.Title>
            <Button kind="quiet" icon="close" aria-label="Close" onClick={onClose} />
          </div>
          {description && <Primitive.Description className="muted">{description}</Primitive.Description>}
          <div className="dialog-body">{children}</div>
        </Primitive.Content>
      </Primitive.Portal>
    </Primitive.Root>
  );
}
