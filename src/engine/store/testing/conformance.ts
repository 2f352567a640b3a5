/** The conformance suite for stores: each guarantee of store.ts as a test, run for each journal. */
import { describe, it } from 'node:test';
import { faultCases } from './fault-cases.ts';
import { readCases } from './read-cases.ts';
import { restartCases } from './restart-cases.ts';
import type { TestBed } from './test-bed.ts';
import { watchCases } from './watch-cases.ts';
import { writeCases } from './write-cases.ts';

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
