/**
 * The plan of a Job and its progress, in ConfigMaps that the Job owns: `<job>-plan-<n>`, written once and before any
 * other change, and `<job>-progress-<n>`, which are overwritten. A plan is valid only if all of its parts exist.
 */
import { TRANSITION_JOBS, type JobReference } from '#api/machine-types/kinds.ts';
import { CONFIG_MAPS, type ConfigMap } from '#kube/core-kinds.ts';
import { TRANSITION_LABEL } from '#api/machine-types/names.ts';
import { apiVersionOf, isRecord } from '#kube/meta.ts';

const PLAN_ACTS = ['clear', 'set', 'mark'] as const;
type PlanAct = (typeof PLAN_ACTS)[number];

export interface PlanEntry {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** uid of the instance that ran when the plan was made. */
  readonly vmiUid?: string;
  readonly act: PlanAct;
  /** `from`, `to` and `gives` are those of VmSelection. */
  readonly from: string;
  readonly to?: string;
  readonly gives?: string;
}

export const ENTRY_STATES = [
  'pending', // Nothing has been changed yet.
  'updated', // The spec has the new type; the guest still runs with the old one.
  'restartRequired', // The VM is marked as well.
  'restarting', // The restart has been requested, or is about to be.
  'done',
  'failed',
  'skipped',
] as const;
export type EntryState = (typeof ENTRY_STATES)[number];

const SETTLED: ReadonlySet<EntryState> = new Set(['done', 'failed', 'skipped']);
/** Reports whether the job is finished with the entry. */
export const isSettled = ({ state }: Pick<EntryNote, 'state'>): boolean => SETTLED.has(state);

export interface EntryNote {
  readonly state: EntryState;
  readonly reason?: string;
  /** Time at which the state was entered; RFC 3339. */
  readonly at?: string;
  /** uid of the instance that must end, if it is not the entry's: it started before the VM was changed. */
  readonly vmiUid?: string;
}

/** Entries per ConfigMap, both of a plan and of its progress. */
export const ENTRIES_PER_CHUNK = 400;
const MAX_CHUNK_BYTES = 256 * 2 ** 10;
/** Limits the size of 400 notes to MAX_CHUNK_BYTES, whatever their characters. */
const MAX_REASON = 140;

/** Returns the ConfigMaps in the order of writing. There is at least one, even for an empty plan. */
export function buildPlanConfigMaps(job: JobReference, entries: readonly PlanEntry[]): ConfigMap[] {
  const chunks = splitIntoChunks(entries.map((entry) => JSON.stringify(entry)));
  const total = String(chunks.length);
  return chunks.map((chunk, at) => buildConfigMap(job, planName(job, at), { plan: `[${chunk.join(',')}]`, total }));
}

function splitIntoChunks(texts: readonly string[]): string[][] {
  const chunks: string[][] = [[]];
  let bytes = 0;
  for (const text of texts) {
    const size = Buffer.byteLength(text) + 1;
    const last = chunks.at(-1)!;
    if (last.length < ENTRIES_PER_CHUNK && bytes + size < MAX_CHUNK_BYTES) {
      last.push(text);
      bytes += size;
    } else {
      chunks.push([text]);
      bytes = size;
    }
  }
  return chunks;
}

/**
 * Returns undefined if a part is missing: then nothing was changed yet, and a new plan may be made. Throws if it is
 * invalid.
 */
export function readPlan(job: JobReference, configMaps: readonly ConfigMap[]): PlanEntry[] | undefined {
  return findPlanParts(job, configMaps)?.flatMap((part) => parseData(job, part, 'plan', isEntries));
}

function findPlanParts(job: JobReference, configMaps: readonly ConfigMap[]): ConfigMap[] | undefined {
  const own = listOwnByName(job, configMaps);
  const total = Number(own.get(planName(job, 0))?.data?.total);
  if (!Number.isSafeInteger(total) || total < 1 || total > own.size) return undefined;
  const parts = Array.from({ length: total }, (_, at) => own.get(planName(job, at)));
  return parts.every((part) => part !== undefined && part.data?.total === String(total))
    ? (parts as ConfigMap[])
    : undefined;
}

/** Returns the number of the ConfigMap with the note of an entry. */
export const chunkOf = (index: number): number => Math.floor(index / ENTRIES_PER_CHUNK);

/** Builds one ConfigMap of the progress. `notes` has the notes of the whole plan by index of their entry. */
export function buildProgressConfigMap(
  job: JobReference,
  chunk: number,
  notes: { get(index: number): EntryNote | undefined },
): ConfigMap {
  const written: Record<string, EntryNote> = {};
  for (let index = chunk * ENTRIES_PER_CHUNK; index < (chunk + 1) * ENTRIES_PER_CHUNK; index++) {
    const note = notes.get(index);
    if (note !== undefined) written[index] = shortenReason(note);
  }
  return buildConfigMap(job, progressName(job, chunk), { notes: JSON.stringify(written) });
}

function shortenReason(note: EntryNote): EntryNote {
  if (note.reason === undefined) return note;
  // Control characters would be six times as long in JSON.
  const reason = note.reason.replace(/\p{Cc}+/gu, ' ').toWellFormed();
  return {
    ...note,
    reason: reason.length <= MAX_REASON ? reason : `${reason.slice(0, MAX_REASON - 1).toWellFormed()}…`,
  };
}

/** Returns all stored notes, by index of their entry. Throws if one is invalid. */
export function readProgress(job: JobReference, configMaps: readonly ConfigMap[]): Map<number, EntryNote> {
  const notes = new Map<number, EntryNote>();
  const prefix = `${job.name}-progress-`;
  for (const [name, part] of listOwnByName(job, configMaps)) {
    if (!name.startsWith(prefix)) continue;
    for (const [index, note] of Object.entries(parseData(job, part, 'notes', isNotes))) notes.set(Number(index), note);
  }
  return notes;
}

const planName = ({ name }: Pick<JobReference, 'name'>, chunk: number) => `${name}-plan-${chunk}`;
export const progressName = ({ name }: Pick<JobReference, 'name'>, chunk: number) => `${name}-progress-${chunk}`;

/** Ignores ConfigMaps of an earlier Job of the same name. */
function listOwnByName(job: JobReference, configMaps: readonly ConfigMap[]): Map<string, ConfigMap> {
  const own = configMaps.filter(({ metadata }) => metadata.labels?.[TRANSITION_LABEL] === job.uid);
  return new Map(own.map((one) => [one.metadata.name ?? '', one]));
}

function buildConfigMap(job: JobReference, name: string, data: Record<string, string>): ConfigMap {
  const owner = {
    apiVersion: apiVersionOf(TRANSITION_JOBS),
    kind: TRANSITION_JOBS.kind,
    name: job.name,
    uid: job.uid,
    controller: true,
  };
  return {
    apiVersion: apiVersionOf(CONFIG_MAPS),
    kind: CONFIG_MAPS.kind,
    metadata: {
      name,
      namespace: job.namespace,
      labels: { [TRANSITION_LABEL]: job.uid },
      ownerReferences: [owner],
    },
    data,
  };
}

function parseData<T>(
  job: JobReference,
  { metadata, data }: ConfigMap,
  key: 'plan' | 'notes',
  is: (value: unknown) => value is T,
): T {
  let value: unknown;
  try {
    value = JSON.parse(data?.[key] ?? '');
  } catch {
    value = undefined;
  }
  if (is(value)) return value;
  throw new Error(
    `Cannot read the plan of job ${job.name}: data.${key} of ConfigMap ${metadata.name ?? ''} is not what the job wrote`,
  );
}

function isEntries(value: unknown): value is PlanEntry[] {
  return Array.isArray(value) && value.every(isEntry);
}

function isEntry(value: unknown): value is PlanEntry {
  if (!isRecord(value)) return false;
  const { namespace, name, uid, vmiUid, act, from, to } = value;
  return (
    [namespace, name, uid, from].every((text) => typeof text === 'string') &&
    [vmiUid, to].every((text) => text === undefined || typeof text === 'string') &&
    (PLAN_ACTS as readonly unknown[]).includes(act)
  );
}

function isNotes(value: unknown): value is Record<string, EntryNote> {
  return isRecord(value) && Object.entries(value).every(([index, note]) => /^[0-9]{1,9}$/.test(index) && isNote(note));
}

function isNote(value: unknown): value is EntryNote {
  if (!isRecord(value)) return false;
  const { state, reason, at, vmiUid } = value;
  return (
    (ENTRY_STATES as readonly unknown[]).includes(state) &&
    [reason, at, vmiUid].every((text) => text === undefined || typeof text === 'string')
  );
}
