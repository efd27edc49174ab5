import { Link } from "@tanstack/react-router";
import { Empty } from "../ui/card";

export function NotFound() {
  return (
    <Empty icon="question" title="There is no such page.">
      <p>
        <Link to="/">Go to the runs</Link>
      </p>
    </Empty>
  );
}
