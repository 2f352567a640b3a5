/**
 * A client that writes to its own objects, one write at a time, and remembers what must have happened to each.
 *
 *   settled ──send──► acknowledged: settled, in the record
 *                └──► connection lost: in doubt ──read after the restart──► it happened (in the record) or not: settled
 *
 * No other client writes to its objects, so the read decides: it finds the old state or the requested one.
 */
import assert from 'node:assert/strict';
import type { Client } from '#client/client.ts';
import type { Ledger } from '#test/crash/ledger.ts';
import { tokenOf } from '#test/crash/tickets.ts';
import type { SeededRandom } from '#test/support/seeded-random.ts';
import { ApiError } from '#kube/api-error.ts';
import { apiVersionOf, type KubeObject, type ResourceType, type Stored } from '#kube/meta.ts';

/** A change of an object, as its watch event reports it. */
export interface ChangeRecord {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** For a delete: the token of the state that was deleted. */
  readonly token: string;
  /** Unknown for deletes. */
  readonly revision?: number;
}

export interface OwnedObject {
  readonly name: string;
  readonly record: ChangeRecord[];
  current: Stored | undefined;
  doubt: { readonly type: ChangeRecord['type']; readonly token: string } | undefined;
}

export interface WriterOptions {
  readonly client: Client;
  readonly type: ResourceType;
  readonly namespace: string;
  /** Prefix of the names of its objects. */
  readonly id: string;
  readonly random: SeededRandom;
  readonly ledger: Ledger;
}

const OBJECTS = 5;

export class Writer {
  readonly objects: readonly OwnedObject[];
  readonly type: ResourceType;
  readonly #options: WriterOptions;
  #sent = 0;
  acknowledged = 0;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.type = options.type;
    this.objects = Array.from({ length: OBJECTS }, (_, index) => ({
      name: `${options.id}-${index}`,
      record: [],
      current: undefined,
      doubt: undefined,
    }));
  }

  /** Sends one write, or the read that settles one. Throws what the client throws. */
  async step(): Promise<void> {
    const doubtful = this.objects.find(({ doubt }) => doubt !== undefined);
    if (doubtful !== undefined) return await this.#settle(doubtful);
    const { random } = this.#options;
    const object = random.pick(this.objects);
    if (object.current === undefined) await this.#write(object, 'ADDED');
    else await this.#write(object, random.chance(0.25) ? 'DELETED' : 'MODIFIED');
  }

  async #write(object: OwnedObject, type: ChangeRecord['type']): Promise<void> {
    const { id, ledger } = this.#options;
    const token = type === 'DELETED' ? tokenOf(object.current!) : `${id}-${++this.#sent}`;
    const before = ledger.newest;
    object.doubt = { type, token };
    const stored = await this.#send(object, type, token);
    object.doubt = undefined;
    object.current = stored;
    this.acknowledged++;
    if (stored === undefined) {
      object.record.push({ type, token });
      return;
    }
    assert.equal(tokenOf(stored), token, 'the answer to a write is what was written');
    object.record.push({ type, token, revision: ledger.noteWritten(this.type, stored, before) });
  }

  async #send(object: OwnedObject, type: ChangeRecord['type'], token: string): Promise<Stored | undefined> {
    const { client, namespace, random } = this.#options;
    const name = { namespace, name: object.name };
    switch (type) {
      case 'ADDED': {
        const made: KubeObject = { apiVersion: apiVersionOf(this.type), kind: this.type.kind, metadata: name };
        return await client.create(this.type, { ...made, data: { token } });
      }
      case 'MODIFIED':
        if (random.chance(0.5)) {
          return await client.patch(this.type, name, { type: 'merge', body: { data: { token } } });
        }
        // With its resourceVersion: a lost write that was replaced by another would be a conflict.
        return await client.update(this.type, { ...object.current!, data: { token } });
      case 'DELETED':
        await client.delete(this.type, name);
        return undefined;
    }
  }

  async #settle(object: OwnedObject): Promise<void> {
    const found = await this.#read(object);
    const { type, token } = object.doubt!;
    const state = found && tokenOf(found);
    const before = object.current && tokenOf(object.current);
    const happened = type === 'DELETED' ? found === undefined : state === token;
    if (!happened)
      assert.equal(state, before, `${object.name} is neither what was acknowledged nor what was requested`);
    if (found !== undefined) {
      const revision = this.#options.ledger.note(this.type, found);
      if (happened) object.record.push({ type, token, revision });
      else assert.equal(found.metadata.resourceVersion, object.current!.metadata.resourceVersion);
    } else if (happened) {
      object.record.push({ type, token });
    }
    object.current = found;
    object.doubt = undefined;
  }

  async #read({ name }: OwnedObject): Promise<Stored | undefined> {
    const { client, namespace } = this.#options;
    try {
      return await client.get(this.type, { namespace, name });
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return undefined;
      throw error;
    }
  }
}
