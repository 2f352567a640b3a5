/**
 * Everything that the server ever reported about a revision. A revision names one state forever, for every client and
 * across kills of the server; a new revision is higher than every revision reported before.
 */
import assert from 'node:assert/strict';
import { groupResource, type KubeObject, type ResourceType, type Stored } from '#kube/meta.ts';

export class Ledger {
  readonly #states = new Map<number, string>();
  #newest = 0;

  /** The highest revision that any client has seen. */
  get newest(): number {
    return this.#newest;
  }

  /** Notes a state that was read, watched or acknowledged; the last state of a deleted object counts too. */
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

  /** Notes the state after a write that was sent when `before` was the highest revision. */
  noteWritten(type: ResourceType, object: Stored, before: number): number {
    const revision = this.note(type, object);
    assert.ok(revision > before, `revision ${revision} was given to a write after ${before} had been reported`);
    return revision;
  }
}

/** Returns the object as text, without apiVersion and kind, which lists omit. */
function canonical(object: KubeObject): string {
  return JSON.stringify({ ...object, apiVersion: undefined, kind: undefined });
}
