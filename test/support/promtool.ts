/** Checks metrics with Prometheus' own promtool, which scripts/setup.sh provides. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const UNPACKED = join(import.meta.dirname, '../../.cache/prometheus/usr/bin/promtool');

/** Throws with the output of promtool if the text is malformed or breaks the rules for names and help texts. */
export function checkMetrics(text: string): void {
  execFileSync(existsSync(UNPACKED) ? UNPACKED : 'promtool', ['check', 'metrics'], { input: text, stdio: 'pipe' });
}
