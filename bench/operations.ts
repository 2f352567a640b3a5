/** The requests of clients in a closed loop, ready to be sent. */
import type { Fields, Method } from './hpack.ts';
import { collectionPath, ParcelBodies, parcelPath, type ParcelKind } from './parcel.ts';

/** Parcels `prefix-0` to `prefix-(count-1)` of a namespace. */
export interface Stock {
  readonly namespace: string;
  readonly prefix: string;
  readonly count: number;
  /** The kind; Parcel by default. */
  readonly kind?: ParcelKind;
}

export type OperationSpec =
  | { readonly verb: 'get' | 'patch' | 'dry delete'; readonly stock: Stock }
  | { readonly verb: 'list'; readonly namespace: string }
  | { readonly verb: 'create'; readonly namespace: string; readonly prefix: string };

export interface Operation {
  readonly method: Method;
  readonly fields: Fields;
  /** The expected status of each response. */
  readonly expect: number;
  next(client: number, turn: number): { path: string; body?: Buffer };
}

export const FIELDS: Fields = { accept: 'application/json', 'user-agent': 'selfsame-bench' };
export const JSON_FIELDS: Fields = { ...FIELDS, 'content-type': 'application/json' };
const MERGE_FIELDS: Fields = { ...FIELDS, 'content-type': 'application/merge-patch+json' };

export function operation(spec: OperationSpec, clients: number): Operation {
  switch (spec.verb) {
    case 'get':
      return {
        method: 'GET',
        fields: FIELDS,
        expect: 200,
        next: (client, turn) => ({ path: ownPath(spec.stock, clients, client, turn) }),
      };
    case 'dry delete':
      return {
        method: 'DELETE',
        fields: FIELDS,
        expect: 200,
        next: (client, turn) => ({ path: `${ownPath(spec.stock, clients, client, turn)}?dryRun=All` }),
      };
    case 'list': {
      const path = collectionPath(spec.namespace);
      return { method: 'GET', fields: FIELDS, expect: 200, next: () => ({ path }) };
    }
    case 'create': {
      const path = collectionPath(spec.namespace);
      const bodies = new ParcelBodies(spec.prefix);
      let number = 0;
      return { method: 'POST', fields: JSON_FIELDS, expect: 201, next: () => ({ path, body: bodies.body(number++) }) };
    }
    case 'patch': {
      // Each run starts with another value, so that every patch changes something.
      let value = Date.now() * 1000;
      return {
        method: 'PATCH',
        fields: MERGE_FIELDS,
        expect: 200,
        next: (client, turn) => ({
          path: ownPath(spec.stock, clients, client, turn),
          body: Buffer.from(`{"metadata":{"labels":{"turn":"${value++}"}}}`),
        }),
      };
    }
  }
}

/** Returns an object of this client. Each client has its own objects, so that no two wait for the same one. */
function ownPath({ namespace, prefix, count, kind }: Stock, clients: number, client: number, turn: number): string {
  const share = Math.floor(count / clients);
  return parcelPath(namespace, prefix, client * share + (turn % share), kind);
}
