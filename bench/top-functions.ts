/** Prints the functions with the most self time of CPU profiles: `node bench/top-functions.ts FILE...`. */
import { readFile } from 'node:fs/promises';

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

const MAX_FUNCTIONS = 40;
const IDLE = new Set(['(idle)', '(program)']);

function topFunctions({ nodes, samples, timeDeltas }: Profile): string[] {
  const names = new Map(
    nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => {
      const location = url.replace(/^.*\/(?=src\/|node_modules\/)/, '');
      return [id, url === '' ? functionName : `${functionName || '(anonymous)'}  ${location}:${lineNumber + 1}`];
    }),
  );
  const selfUs = new Map<string, number>();
  let busyUs = 0;
  for (const [at, id] of samples.entries()) {
    const name = names.get(id) ?? '?';
    const us = timeDeltas[at]!;
    selfUs.set(name, (selfUs.get(name) ?? 0) + us);
    if (!IDLE.has(name)) busyUs += us;
  }
  const sorted = [...selfUs].sort((a, b) => b[1] - a[1]).slice(0, MAX_FUNCTIONS);
  return sorted.map(
    ([name, us]) =>
      `${((us / busyUs) * 100).toFixed(1).padStart(6)} %  ${(us / 1e6).toFixed(2).padStart(7)} s  ${name}`,
  );
}

for (const file of process.argv.slice(2)) {
  const profile = JSON.parse(await readFile(file, 'utf8')) as Profile;
  process.stdout.write(`${file} (share of the time that was not idle)\n${topFunctions(profile).join('\n')}\n\n`);
}
