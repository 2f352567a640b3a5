/**
 * The conformance suite of the hypervisor port: every statement of hypervisor.ts and migration.ts as a test. Each
 * implementation runs it.
 */
import { describe, it } from 'node:test';
import { adoptCases } from '#node/hypervisor/testing/adopt-cases.ts';
import { consoleCases } from '#node/hypervisor/testing/console-cases.ts';
import { copyCases } from '#node/hypervisor/testing/copy-cases.ts';
import { displayCases } from '#node/hypervisor/testing/display-cases.ts';
import { endCases } from '#node/hypervisor/testing/end-cases.ts';
import { accessCases } from '#node/hypervisor/testing/access-cases.ts';
import { hotplugCases } from '#node/hypervisor/testing/hotplug-cases.ts';
import { migrateCases } from '#node/hypervisor/testing/migrate-cases.ts';
import type { ConformanceScene } from '#node/hypervisor/testing/scene.ts';
import { startCases } from '#node/hypervisor/testing/start-cases.ts';
import { abortCases } from '#node/hypervisor/testing/abort-cases.ts';

export type { ConformanceScene } from '#node/hypervisor/testing/scene.ts';

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
