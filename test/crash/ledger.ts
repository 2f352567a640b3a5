/**
 * Everything that the server ever told about a revision. A revision names one state for ever, whoever hears of it and
 * however often the server was killed in between; a new one is newer than all that were told before.
 */
import assert from 'node:assert/strict';
import { groupResource, type KubeObject, type ResourceType, type Stored } from '#kube/meta.ts';

export class Ledger {
  readonly #states = new Map<number, string>();
  #newest = 0;

  /** The newest revision that anybody has heard of. */
  get newest(): number {
    return this.#newest;
  }

  /** A state that was read, watched or acknowledged. The last state of a deleted object is one too. */
  note(type: ResourceType, object: Stored, deleted = false): number {
    const revision = Number(object.metadata.resourceVersion);
    assert.ok(Number.isSafeInteger(revision) && revision > 0, `resourceVersion ${object.metadata.resourceVersion}`);
    const state = `${deleted ? 'deleted ' : ''}${groupResource(type)} ${canonical(object)}`;
    const known = this.#states.get(revision);
    if (known !== undefined) assert.equal(state, known, `revision ${revision} names two states`);
    this.#states.set(revision, state);
    this.#newest = Math.max(this.#newest, revision);
    return revision;
  }

  /** The state that a write made, which was sent when `before` was the newest revision. */
  noteWritten(type: ResourceType, object: Stored, before: number): number {
    const revision = this.note(type, object);
    assert.ok(revision > before, `revision ${revision} was given to a write after ${before} had been told`);
    return revision;
  }
}

/** Lists leave apiVersion and kind out. */
function canonical(object: KubeObject): string {
  return JSON.stringify({ ...object, apiVersion: undefined, kind: undefined });
}
