/** `selfsame doctor`: prints the findings of src/doctor and writes the support bundle. */
import { readFileSync } from 'node:fs';
import { openConnection } from '#cli/connection/api-connection.ts';
import { findKilledTours } from '#cli/tour/own-plane.ts';
import { findRunningKubeconfig } from '#cli/tour/running-plane.ts';
import { readKubeconfigFile } from '#client/kubeconfig-file.ts';
import { dataDirSource } from '#doctor/bundle/data-dir-source.ts';
import { gatherBundle, type BundleSource } from '#doctor/bundle/gather.ts';
import { writeBundle } from '#doctor/bundle/write-bundle.ts';
import { examine } from '#doctor/doctor.ts';
import { examinationText, findingsText, isHealthy, type Examination, type Finding } from '#doctor/finding.ts';
import type { PlaneLocation } from '#doctor/place.ts';
import { thisMachine } from '#doctor/this-machine.ts';
import type { Clock } from '#lib/clock.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import type { EnvironmentVariables } from '#lib/command-line/parse-args.ts';
import { createPainter, type MaybeTerminal } from '#lib/terminal/colour.ts';
import { VERSION } from '#lib/version.ts';
import { errorMessage } from '#lib/error-message.ts';

/** Examines this machine. `path` is the PATH of the caller. */
export async function examineThisMachine(place: PlaneLocation, path: string): Promise<Examination> {
  return await examine(thisMachine(path), { ...place, killedTours: await findKilledTours() });
}

export interface DoctorCall {
  readonly examination: Examination;
  readonly place: PlaneLocation;
  readonly output: 'text' | 'json';
  /** Path of the support bundle to write, if any. */
  readonly bundle: string | undefined;
  readonly stdout: MaybeTerminal;
  readonly clock: Clock;
  /** Decides on colours. */
  readonly env: EnvironmentVariables;
}

/** Returns the JSON output; programs depend on its keys. */
function toOutput({ findings, ...rest }: Examination): object {
  return {
    ...rest,
    findings: findings.map(({ message, fix, ...finding }) => ({
      ...finding,
      says: message,
      ...(fix !== undefined && { mend: fix }),
    })),
  };
}

/** Prints the findings and returns the exit code. */
export async function runDoctor(call: DoctorCall): Promise<number> {
  const { examination, output, bundle, stdout, env } = call;
  const isJson = output === 'json';
  stdout.write(
    isJson
      ? `${JSON.stringify(toOutput(examination), undefined, 2)}\n`
      : examinationText(examination, createPainter(stdout, env)),
  );
  if (bundle !== undefined) {
    try {
      const bytes = await writeSupportBundle(call, bundle);
      if (!isJson) stdout.write(`\n${bundle}: ${bytes} bytes. Review it before you share it: tar tzf ${bundle}\n`);
    } catch (error) {
      throw new CommandError(`Cannot write ${bundle}: ${errorMessage(error)}`, { cause: error });
    }
  }
  return isHealthy(examination) ? 0 : 1;
}

async function writeSupportBundle({ examination, place, clock }: DoctorCall, bundle: string): Promise<number> {
  const { api, close } = openApi(place.dataDir, clock);
  try {
    const about = {
      version: VERSION,
      node: process.version,
      platform: `${process.platform} ${process.arch}`,
      place,
      at: new Date(clock.now()),
    };
    const files = await gatherBundle(dataDirSource(place.dataDir, api), [
      { name: 'doctor.txt', text: examinationText(examination) },
      { name: 'about.json', text: `${JSON.stringify(about, undefined, 2)}\n` },
    ]);
    return await writeBundle(bundle, files, Math.floor(clock.now() / 1000));
  } finally {
    close();
  }
}

function openApi(dataDir: string, clock: Clock): { api: BundleSource['api']; close(): void } {
  const kubeconfig = findRunningKubeconfig(dataDir);
  if (kubeconfig === undefined) return { api: undefined, close() {} };
  const readFile = (path: string) => readFileSync(path, 'utf8');
  const access = readKubeconfigFile(kubeconfig);
  const connection = openConnection({ access, userAgent: `selfsame-doctor/${VERSION}`, clock, readFile });
  return {
    api: { get: (path) => connection.get(path), text: (path) => connection.getText(path) },
    close: () => connection.close(),
  };
}

/** The checks that the tour requires, in addition to those that every VM requires. */
const TOUR_NEEDS = new Set(['swtpm', 'UEFI firmware', 'built-in guest']);

/** Returns why a temporary plane cannot run the tour, or '' if it can. */
export async function findTourRefusal(place: PlaneLocation): Promise<string> {
  // The tour runs no program from the PATH of the user.
  const { findings } = await examineThisMachine(place, '');
  return tourRefusalText(findings);
}

export function tourRefusalText(findings: readonly Finding[]): string {
  const needed = findings.filter(
    ({ what, state }) => state === 'missing' || (state !== 'works' && TOUR_NEEDS.has(what)),
  );
  if (needed.length === 0) return '';
  // A limitation elsewhere is a missing requirement here.
  const text = findingsText(needed.map((finding) => ({ ...finding, state: 'missing' })));
  return `Cannot start the tour on this machine:\n\n${text}\n\nRun selfsame doctor for the full check.`;
}
