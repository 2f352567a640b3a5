/**
 * Runs real kubectl and virtctl on a real server: every transcript (*.txt, format: transcript.ts) with each kubectl version,
 * in a namespace with its name. Each version has its own servers: an engine alone, and a plane with simulated nodes. The
 * old kubectl runs a third of the engine's transcripts here, and all of them in `npm run test:full`. `UPDATE=1` writes the
 * actual output into the transcripts: check the difference before you keep it, because the output of kube-apiserver is
 * the reference, not ours.
 */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { FULL_RUN } from '#test/support/full-run.ts';
import { findNewKubectl, findOldKubectl, type FoundKubectl } from '#test/support/kubectl.ts';
import { startPlane, type Plane } from '#test/support/plane.ts';
import { startSimulatedPlane } from '#test/support/simulated-plane.ts';
import { readyNamespace, removeNamespace } from '#test/transcripts/ready-namespace.ts';
import { hideOwners } from '#test/transcripts/hide-owners.ts';
import { runTranscript } from '#test/transcripts/run-transcript.ts';
import { Session } from '#test/transcripts/session.ts';
import {
  parseTranscript,
  planeKindOf,
  renderTranscript,
  type PlaneKind,
  type Version,
} from '#test/transcripts/transcript.ts';

const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.txt'));
const pathOf = (file: string) => join(import.meta.dirname, file);
const readTranscript = (file: string) => readFileSync(pathOf(file), 'utf8');
/** A part of the file names of the transcripts to run. */
const chosen = process.env['TRANSCRIPT'] ?? '';

test('there are transcripts', () => assert.ok(files.length > 10));

const update = process.env['UPDATE'] === '1';
const full = update || chosen !== '' || FULL_RUN;

const starts: Record<PlaneKind, () => Promise<Plane>> = {
  engine: () => startPlane(),
  fake: () => startSimulatedPlane({ nodes: 2 }),
};

const kubectls: Record<Version, FoundKubectl> = { '1.20': findOldKubectl(), '1.32': findNewKubectl() };
/** One of this many transcripts runs with the old kubectl; all if there is no other kubectl. */
const SAMPLING = full || 'missing' in kubectls['1.32'] ? 1 : 3;

// Both versions at once, unless they write the same files.
suite('transcripts', { concurrency: update ? 1 : 2 }, () => {
  for (const [version, kubectl] of Object.entries(kubectls) as [Version, FoundKubectl][]) {
    if ('missing' in kubectl) test(`kubectl ${version}`, { skip: kubectl.missing }, () => {});
    else suite(`kubectl ${kubectl.version}`, { concurrency: 1 }, () => testTranscripts(version, kubectl.path));
  }
});

function testTranscripts(version: Version, kubectl: string): void {
  for (const [kind, start] of Object.entries(starts)) {
    const all = files.filter((name) => name.includes(chosen) && planeKindOf(readTranscript(name)) === kind);
    const wanted = version === '1.20' ? all.filter((_, index) => index % SAMPLING === 0) : all;
    if (wanted.length === 0 || (kind === 'fake' && version === '1.20' && !full)) continue;
    suite(kind, { concurrency: 1 }, () => {
      let plane: Plane;
      before(async () => {
        plane = await start();
      });
      after(() => plane.stop());
      for (const file of wanted) test(file, () => testTranscript(file, version, kubectl, plane));
    });
  }
}

async function testTranscript(file: string, version: Version, kubectl: string, plane: Plane): Promise<void> {
  const namespace = basename(file, '.txt');
  const dir = join(plane.dir, namespace);
  await readyNamespace(namespace, plane.kubeconfigPath);
  // 1.20 always prints managedFields, later versions only on request.
  const shown = version === '1.20' ? { shown: hideOwners } : {};
  const session = await Session.open({ dir, kubectl, kubeconfig: plane.kubeconfigPath, namespace, ...shown });
  try {
    const { actual, differences } = await runTranscript(parseTranscript(readTranscript(file)), version, (command) =>
      session.run(command),
    );
    if (update) writeFileSync(pathOf(file), renderTranscript(actual));
    else assert.equal(differences.length, 0, `${file} differs:\n\n${differences.join('\n\n')}`);
  } finally {
    session.close();
    await removeNamespace(namespace, plane.kubeconfigPath);
  }
}
