/** The conformance suite for stores: each guarantee of store.ts as a test, run for each journal. */
import { describe, it } from 'node:test';
import { faultCases } from '#engine/store/testing/fault-cases.ts';
import { readCases } from '#engine/store/testing/read-cases.ts';
import { restartCases } from '#engine/store/testing/restart-cases.ts';
import type { TestBed } from '#engine/store/testing/test-bed.ts';
import { watchCases } from '#engine/store/testing/watch-cases.ts';
import { writeCases } from '#engine/store/testing/write-cases.ts';

/** Tests by the guarantee that they check. */
export type Cases = Readonly<Record<string, (bed: TestBed) => Promise<void>>>;

export function storeConformance(name: string, createBed: () => TestBed): void {
  const suites = { write: writeCases, read: readCases, watch: watchCases, restart: restartCases, fault: faultCases };
  for (const [part, cases] of Object.entries(suites)) {
    describe(`${name}: ${part}`, { concurrency: 4 }, () => {
      for (const [sentence, run] of Object.entries(cases)) {
        it(sentence, async () => {
          const bed = createBed();
          try {
            await run(bed);
          } finally {
            await bed.remove();
          }
        });
      }
    });
  }
}
