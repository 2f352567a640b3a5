/**
 * Runs every command and manifest of README.md and docs/ on one plane with simulated guests, each page in its own
 * namespace, from top to bottom, as a reader would type it. page.ts and CONTRIBUTING.md say what is run.
 * DOCS=part-of-a-name: only those pages.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { systemClock } from '#lib/clock.ts';
import { blocksOf, commandsOf, findPageErrors, type Block, type Command } from '#test/docs/page.ts';
import { isSameOutput } from '#test/docs/same-output.ts';
import { FULL_RUN } from '#test/support/full-run.ts';
import { findNewKubectl } from '#test/support/kubectl.ts';
import type { Plane } from '#test/support/plane.ts';
import { startSimulatedPlane } from '#test/support/simulated-plane.ts';
import { readyNamespace, removeNamespace } from '#test/transcripts/ready-namespace.ts';
import { Session, type SessionOptions } from '#test/transcripts/session.ts';

const ROOT = join(import.meta.dirname, '../..');
/** As long as a reader would wait for an output. */
const PATIENCE_MS = 20_000;
const REPEAT_MS = 250;
/** A real guest may take half a minute to shut down, and the machine may be busy. */
const REAL_COMMAND_MS = 180_000;
/** Read-only commands, which are repeated until they print what the page says; other commands run once. */
const READ_ONLY =
  /^(?:kubectl (?:get|describe|logs|top|auth)|(?:\.\/)?virtctl (?:identity|update machine-types (?:list|supported))|(?:\.\/)?selfsame (?:audit|host .*list))/;

const pages = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
  ...readdirSync(join(ROOT, 'docs/howto')).map((name) => `docs/howto/${name}`),
];
const textOf = (page: string) => readFileSync(join(ROOT, page), 'utf8');
const chosen = pages.filter((page) => page.includes(process.env['DOCS'] ?? ''));

test('there are pages, and they have commands', () => {
  assert.ok(pages.length > 10);
  assert.ok(pages.flatMap((page) => blocksOf(textOf(page))).filter(runs).length > 20);
});

for (const page of pages) {
  test(`${page}: every block states its language and can be parsed`, () =>
    assert.deepEqual(findPageErrors(textOf(page)), []));
}

const LINK = /\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)/g;
test('every link between pages leads to a file', () => {
  const index = ['README.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md', 'examples/README.md', ...pages];
  const broken = [...new Set(index)].flatMap((page) =>
    [...textOf(page).matchAll(LINK)]
      .map(([, path = '']) => path)
      .filter((path) => !existsSync(join(ROOT, page, '..', path)))
      .map((path) => `${page}: ${path}`),
  );
  assert.deepEqual(broken, []);
});

test('the index has every page', () => {
  const index = textOf('docs/README.md');
  const missing = pages
    .filter((page) => page.startsWith('docs/') && page !== 'docs/README.md')
    .filter((page) => !index.includes(`(${page.slice('docs/'.length)})`));
  assert.deepEqual(missing, []);
});

const kubectl = findNewKubectl();
const wantsReal = ({ directive }: Block) => directive?.kind === 'real-guests-too';

// Two at a time: pages mostly wait, and each has its own namespace.
testPages('commands and manifests', { hypervisor: 'fake', concurrency: 2 }, (page) =>
  blocksOf(textOf(page)).filter(runs),
);
test('at least one page runs on real guests too', () => {
  assert.ok(pages.some((page) => blocksOf(textOf(page)).some(wantsReal)));
});
if (FULL_RUN) {
  testPages('on real guests', { hypervisor: 'qemu', concurrency: 1 }, (page) => {
    const blocks = blocksOf(textOf(page));
    return blocks.some(wantsReal) ? blocks.filter(runs) : [];
  });
}

interface TestPlane {
  readonly hypervisor: 'fake' | 'qemu';
  readonly concurrency: number;
}

function testPages(
  title: string,
  { hypervisor, concurrency }: TestPlane,
  chosenBlocks: (page: string) => readonly Block[],
): void {
  const wanted = chosen.map((page) => ({ page, blocks: chosenBlocks(page) })).filter(({ blocks }) => blocks.length > 0);
  if (wanted.length === 0) return;
  suite(title, { skip: 'missing' in kubectl ? kubectl.missing : false, concurrency }, () => {
    if ('missing' in kubectl) return;
    let plane: Plane;
    before(async () => {
      plane = await startSimulatedPlane({ nodes: 2, hypervisor });
    });
    after(() => plane.stop());
    const timeLimitMs = hypervisor === 'fake' ? undefined : REAL_COMMAND_MS;
    for (const { page, blocks } of wanted) {
      test(page, () => runPage(page, blocks, plane, { kubectl: kubectl.path, ...(timeLimitMs && { timeLimitMs }) }));
    }
  });
}

function runs({ language, directive }: Block): boolean {
  if (directive?.kind === 'not-run') return false;
  return ['sh', 'console', 'yaml', 'hidden'].includes(language);
}

async function runPage(
  page: string,
  blocks: readonly Block[],
  plane: Plane,
  how: Pick<SessionOptions, 'kubectl' | 'timeLimitMs'>,
): Promise<void> {
  // A unique name, which is replaced by `default` before the comparison with the page.
  const namespace = `docs-${basename(page, '.md').toLowerCase()}`;
  const dir = join(plane.dir, namespace);
  await readyNamespace(namespace, plane.kubeconfigPath);
  const session = await Session.open({ dir, ...how, kubeconfig: plane.kubeconfigPath, namespace });
  await symlink(join(ROOT, 'selfsame'), join(dir, 'bin/selfsame'));
  await symlink(join(plane.dir, 'data'), join(dir, 'work/.selfsame'));
  for (const name of ['selfsame', 'virtctl']) await symlink(join(ROOT, name), join(dir, 'work', name));
  await mkdir(join(dir, 'blocks'));
  const wrong: string[] = [];
  try {
    for (const block of blocks) {
      const { language, line, directive } = block;
      if (language === 'yaml') {
        await writeFile(join(dir, 'blocks', `${line}.yaml`), block.text);
        const how =
          directive?.kind === 'patch'
            ? `patch ${directive.target.replace('/', ' ')} --type=merge --patch-file`
            : 'apply -f';
        const text = `kubectl ${how} ../blocks/${line}.yaml --dry-run=server`;
        wrong.push(...(await runCommand(session, { text, line, fails: false, output: undefined })));
      } else for (const command of commandsOf(block)) wrong.push(...(await runCommand(session, command)));
    }
  } finally {
    session.close();
    await removeNamespace(namespace, plane.kubeconfigPath).catch(() => {});
  }
  assert.equal(wrong.length, 0, `${page} differs from the program:\n\n${wrong.join('\n\n')}`);
}

/** Runs a command; returns the difference, if any. Read-only commands are repeated until they print what the page says. */
async function runCommand(session: Session, { text, line, fails, output }: Command): Promise<string[]> {
  const until = systemClock.elapsed() + PATIENCE_MS;
  for (;;) {
    const result = await session.run(inShell(text));
    const isRight =
      (result.exit !== 0) === fails && (output === undefined || isSameOutput(output, asInDefault(result.text)));
    if (isRight) return [];
    if (!READ_ONLY.test(text) || systemClock.elapsed() > until) {
      const wanted = output === undefined ? (fails ? 'that it fails' : 'that it works') : output;
      return [
        `line ${line}: $ ${text}\n--- the page says\n${wanted}\n--- it printed (exit ${result.exit})\n${result.text}`,
      ];
    }
    await new Promise<void>((resolve) => void systemClock.after(REPEAT_MS, resolve));
  }
}

/** Makes the program use the data directory of the plane. */
const inShell = (text: string) => `export SELFSAME_DATA_DIR="$PWD/.selfsame"; ${text}`;

const asInDefault = (text: string) => text.replaceAll(/\bdocs-[a-z-]+\b/g, 'default');
