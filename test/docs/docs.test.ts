/**
 * Every command and manifest of README.md and docs/ against one plane with simulated guests, each page in a namespace of
 * its own, from top to bottom, as a reader would type it. What is run and what is not: page.ts, CONTRIBUTING.md.
 * DOCS=part-of-a-name: only those pages.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { systemClock } from '#lib/clock.ts';
import { blocksOf, commandsOf, faultsOf, type Block, type Command } from '#test/docs/page.ts';
import { isSameOutput } from '#test/docs/same-output.ts';
import { FULL_RUN } from '#test/support/full-run.ts';
import { newKubectl } from '#test/support/kubectl.ts';
import type { Plane } from '#test/support/plane.ts';
import { startSimulatedPlane } from '#test/support/simulated-plane.ts';
import { readyNamespace, removeNamespace } from '#test/transcripts/ready-namespace.ts';
import { Session, type SessionOptions } from '#test/transcripts/session.ts';

const ROOT = join(import.meta.dirname, '../..');
/** What a reader would wait for, too, before reading on. */
const PATIENCE_MS = 20_000;
const LOOK_AGAIN_MS = 250;
/** A real guest that is told to shut down has half a minute for it, and the machine may be busy. */
const REAL_COMMAND_MS = 180_000;
/** Looks at something that becomes true in a moment; others act, and act once. */
const LOOKS =
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
  test(`${page}: every block says what it is`, () => assert.deepEqual(faultsOf(textOf(page)), []));
}

const LINK = /\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)/g;
test('every link between pages leads somewhere', () => {
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

const kubectl = newKubectl();
const wantsReal = ({ directive }: Block) => directive?.kind === 'real-guests-too';

// Two at a time: they wait more than they work, and each has its own namespace.
proveAll('commands and manifests', { hypervisor: 'fake', concurrency: 2 }, (page) =>
  blocksOf(textOf(page)).filter(runs),
);
test('some page is run on real guests, too', () => {
  assert.ok(pages.some((page) => blocksOf(textOf(page)).some(wantsReal)));
});
if (FULL_RUN) {
  proveAll('on real guests', { hypervisor: 'qemu', concurrency: 1 }, (page) => {
    const blocks = blocksOf(textOf(page));
    return blocks.some(wantsReal) ? blocks.filter(runs) : [];
  });
}

interface How {
  readonly hypervisor: 'fake' | 'qemu';
  readonly concurrency: number;
}

function proveAll(
  title: string,
  { hypervisor, concurrency }: How,
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
      test(page, () => walk(page, blocks, plane, { kubectl: kubectl.path, ...(timeLimitMs && { timeLimitMs }) }));
    }
  });
}

function runs({ language, directive }: Block): boolean {
  if (directive?.kind === 'not-run') return false;
  return ['sh', 'console', 'yaml', 'hidden'].includes(language);
}

async function walk(
  page: string,
  blocks: readonly Block[],
  plane: Plane,
  how: Pick<SessionOptions, 'kubectl' | 'timeLimitMs'>,
): Promise<void> {
  // A name that nothing else has: what a reader would see in `default` is compared with it.
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
        wrong.push(...(await carryOut(session, { text, line, fails: false, output: undefined })));
      } else for (const command of commandsOf(block)) wrong.push(...(await carryOut(session, command)));
    }
  } finally {
    session.close();
    await removeNamespace(namespace, plane.kubeconfigPath).catch(() => {});
  }
  assert.equal(wrong.length, 0, `${page} is not true:\n\n${wrong.join('\n\n')}`);
}

/** What differs. What is only looked at is looked at again until it is as the page says, or nobody would wait longer. */
async function carryOut(session: Session, { text, line, fails, output }: Command): Promise<string[]> {
  const until = systemClock.elapsed() + PATIENCE_MS;
  for (;;) {
    const said = await session.run(inShell(text));
    const isRight =
      (said.exit !== 0) === fails && (output === undefined || isSameOutput(output, asInDefault(said.text)));
    if (isRight) return [];
    if (!LOOKS.test(text) || systemClock.elapsed() > until) {
      const wanted = output === undefined ? (fails ? 'that it fails' : 'that it works') : output;
      return [`line ${line}: $ ${text}\n--- the page says\n${wanted}\n--- it said (exit ${said.exit})\n${said.text}`];
    }
    await new Promise<void>((resolve) => void systemClock.after(LOOK_AGAIN_MS, resolve));
  }
}

/** The program looks where the plane is, not where it is installed. */
const inShell = (text: string) => `export SELFSAME_DATA_DIR="$PWD/.selfsame"; ${text}`;

const asInDefault = (text: string) => text.replaceAll(/\bdocs-[a-z-]+\b/g, 'default');
