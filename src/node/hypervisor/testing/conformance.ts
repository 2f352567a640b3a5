/**
 * The conformance suite of the hypervisor port: every statement of hypervisor.ts and migration.ts as a test. Each
 * implementation runs it.
 */
import { describe, it } from 'node:test';
import { adoptCases } from './adopt-cases.ts';
import { consoleCases } from './console-cases.ts';
import { copyCases } from './copy-cases.ts';
import { displayCases } from './display-cases.ts';
import { endCases } from './end-cases.ts';
import { accessCases } from './access-cases.ts';
import { hotplugCases } from './hotplug-cases.ts';
import { migrateCases } from './migrate-cases.ts';
import type { ConformanceScene } from './scene.ts';
import { startCases } from './start-cases.ts';
import { abortCases } from './abort-cases.ts';

export type { ConformanceScene } from './scene.ts';

/** Generous, because real guests are slow on a busy machine. Passing tests do not wait for it. */
const TIMEOUT_MS = 60_000;

export function hypervisorConformance(name: string, make: () => Promise<ConformanceScene>): void {
  const suites = {
    ...{ start: startCases, end: endCases, console: consoleCases, display: displayCases, access: accessCases },
    ...{ copy: copyCases, hotplug: hotplugCases, adopt: adoptCases, migrate: migrateCases, abort: abortCases },
  };
  for (const [part, cases] of Object.entries(suites)) {
    describe(`${name}: ${part}`, () => {
      for (const [sentence, run] of Object.entries(cases)) {
        it(sentence, { timeout: TIMEOUT_MS }, async () => {
          const scene = await make();
          try {
            await run(scene);
          } finally {
            await scene.end();
          }
        });
      }
    });
  }
}
