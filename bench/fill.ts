/** Creates parcels in a namespace, as fast as several clients can. Existing parcels stay. */
import { JSON_FIELDS, type Stock } from './operations.ts';
import { collectionPath, ParcelBodies } from './parcel.ts';
import { RawConnection, type Target } from './raw-h2.ts';

export interface FillJob {
  readonly kind: 'fill';
  readonly target: Target;
  readonly stock: Stock;
}

const CLIENTS = 16;

export async function fill({ target, stock }: FillJob): Promise<void> {
  const { namespace, prefix, count, kind } = stock;
  const path = collectionPath(namespace, kind);
  const bodies = new ParcelBodies(prefix, kind);
  let next = 0;
  const client = async () => {
    const connection = await RawConnection.connect(target, JSON_FIELDS);
    while (next < count) {
      const { status, body } = await connection.exchange('POST', path, bodies.body(next++));
      if (status !== 201 && status !== 409)
        throw new Error(`Cannot fill "${namespace}": the response has status ${status}: ${body.toString()}`);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
}
