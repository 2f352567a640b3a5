/**
 * A node:test reporter: prints failures in full, skips with their reason, one line of counts, and for a long run its
 * slowest files. Passing tests are silent. If COUNTS_FILE is set, appends the counts as `passed failed skipped`, which
 * scripts/test.sh adds up.
 *
 * Has a default export because node:test loads reporters that way.
 */
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import { inspect } from 'node:util';
import type { TestEvent } from 'node:test/reporters';

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** A longer run prints its slowest files. */
const LONG_MS = 60_000;
const MAX_SLOWEST = 6;

// oxlint-disable-next-line import/no-default-export -- node:test requires one.
export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  const files: { readonly file: string; readonly ms: number }[] = [];
  let durationMs = 0;
  for await (const event of source) {
    switch (event.type) {
      case 'test:fail':
        // A parent fails with its children, which have the reason.
        if (!isParentFailure(event.data.details.error)) yield failure(event.data);
        break;
      case 'test:pass':
        if (event.data.skip !== undefined) yield `skipped: ${event.data.name}: ${reasonOf(event.data.skip)}\n`;
        break;
      case 'test:stderr':
      case 'test:stdout':
        yield event.data.message;
        break;
      case 'test:summary':
        // There is one summary per file, and a last one for the whole run.
        if (event.data.file !== undefined) {
          files.push({ file: event.data.file, ms: event.data.duration_ms });
          break;
        }
        counts.passed = event.data.counts.passed;
        counts.failed =
          event.data.counts.tests - event.data.counts.passed - event.data.counts.skipped - event.data.counts.todo;
        counts.skipped = event.data.counts.skipped + event.data.counts.todo;
        durationMs = event.data.duration_ms;
        break;
      default:
        break;
    }
  }
  if (durationMs > LONG_MS && files.length > 1) yield slowest(files);
  yield `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped in ${(durationMs / 1000).toFixed(1)} s\n`;
  const file = process.env['COUNTS_FILE'];
  if (file !== undefined) appendFileSync(file, `${counts.passed} ${counts.failed} ${counts.skipped}\n`);
}

function slowest(files: readonly { readonly file: string; readonly ms: number }[]): string {
  const first = files.toSorted((a, b) => b.ms - a.ms).slice(0, MAX_SLOWEST);
  const lines = first.map(({ file, ms }) => `${relative(process.cwd(), file)} ${Math.round(ms / 1000)} s`);
  return `slowest: ${lines.join(', ')}\n`;
}

function isParentFailure(error: Error): boolean {
  return (error as { failureType?: string }).failureType === 'subtestsFailed';
}

function failure({
  name,
  file,
  line,
  details,
}: {
  name: string;
  file?: string;
  line?: number;
  details: { error: Error };
}): string {
  const where = file === undefined ? '' : ` (${relative(process.cwd(), file)}:${line})`;
  const cause = details.error.cause ?? details.error;
  const text = cause instanceof Error ? (cause.stack ?? cause.message) : inspect(cause);
  return `\nFAILED: ${name}${where}\n${text.replaceAll(/^/gm, '    ')}\n`;
}

function reasonOf(skip: string | boolean): string {
  return typeof skip === 'string' ? skip : 'no reason given';
}
