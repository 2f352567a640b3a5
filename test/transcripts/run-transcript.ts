/** Runs the steps of a transcript with one kubectl version and reports the differences from the golden output. */
import { lineDiff } from '#test/transcripts/line-diff.ts';
import { normalise } from '#test/transcripts/normalise.ts';
import type { Output, Step, Transcript, Version } from '#test/transcripts/transcript.ts';
import { sameOutput } from '#test/transcripts/transcript.ts';

export interface TranscriptRun {
  /** The transcript as this run would have written it. */
  readonly actual: Transcript;
  /** One entry for each step that differs: the command and the difference. */
  readonly differences: readonly string[];
}

/** Runs all steps, also after a difference, because later steps help to find its cause. */
export async function runTranscript(
  transcript: Transcript,
  version: Version,
  run: (command: string) => Promise<Output>,
): Promise<TranscriptRun> {
  const steps: Step[] = [];
  const differences: string[] = [];
  for (const step of transcript.steps) {
    if (step.only !== undefined && step.only !== version) {
      steps.push(step);
      continue;
    }
    const { text, exit } = await run(step.command);
    const output = { text: normalise(text), exit };
    const wanted = step.outputs[version] ?? { text: '', exit: 0 };
    if (!sameOutput(wanted, output)) differences.push(difference(step.command, wanted, output));
    steps.push({ ...step, outputs: { ...step.outputs, [version]: output } });
  }
  return { actual: { steps, ending: transcript.ending }, differences };
}

function difference(command: string, wanted: Output, got: Output): string {
  return `$ ${command.replaceAll('\n', '\n> ')}\n${lineDiff(withExit(wanted), withExit(got))}`;
}

const withExit = ({ text, exit }: Output) => (exit === 0 ? text : `${text}\n[exit ${exit}]`);
