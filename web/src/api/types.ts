// Short names of the generated types of the interface.

import type { components } from "./schema";

type Schemas = components["schemas"];

export type Run = Schemas["ShownRun"];
export type FleetRun = Schemas["FleetRun"];
/** A run of the list, with what the server knows about its queue. */
export type ListedRun = Schemas["RunSummary"] & Partial<Schemas["RunDetails"]> & Partial<Pick<FleetRun, "queue_position" | "needs_you" | "activity">>;
export type CommandAvailability = Schemas["CommandAvailability"];
export type AttentionItem = Schemas["AttentionItem"];
export type IterationSummary = Schemas["IterationSummary"];
export type TimelineAction = Schemas["TimelineAction"];
export type Evidence = Schemas["Evidence"];
export type Transcript = Schemas["Transcript"];
