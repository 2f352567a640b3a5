/** Shows the progress of a transfer: amount, rate and remaining time. */
import { barText, byteRateText, bytesText, RateMeter, remainingText } from '#lib/terminal/progress-text.ts';
import type { StatusOutput } from '#lib/terminal/status-output.ts';

interface Transfer {
  /** The name of what is transferred. */
  readonly what: string;
  /** The size in bytes. */
  readonly size: number;
  /** The bytes that were transferred before; 0 by default. */
  readonly from?: number;
}

/** Passes the chunks through and shows the progress. Ends the progress also if a side fails. */
export async function* trackTransfer(
  status: StatusOutput,
  { what, size, from = 0 }: Transfer,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const { clock } = status;
  const beganAtMs = clock.elapsed();
  const meter = new RateMeter(beganAtMs, from);
  const progress = status.begin();
  const first = from === 0 ? bytesText(size) : `resuming at ${bytesText(from)} of ${bytesText(size)}`;
  let bytes = from;
  let result: string | undefined;
  try {
    progress.show({ plain: `${what}: ${first}` });
    for await (const chunk of chunks) {
      bytes += chunk.length;
      const rate = meter.rate(clock.elapsed(), bytes);
      const amount = `${bytesText(bytes)} of ${bytesText(size)}`;
      const speed = `${byteRateText(rate)}${remainingText(size - bytes, rate)}`;
      const percent = Math.floor((bytes / size) * 100);
      progress.show({
        // The last line reports the end.
        plain: bytes < size ? `${what}: ${amount} (${percent}%), ${speed}` : undefined,
        live: (columns) => barText({ label: what, done: bytes, total: size, detail: `${amount}, ${speed}` }, columns),
      });
      yield chunk;
    }
    const seconds = Math.max(clock.elapsed() - beganAtMs, 1) / 1000;
    result = `${what}: done, ${bytesText(bytes - from)} at ${byteRateText((bytes - from) / seconds)}`;
  } finally {
    progress.end(result);
  }
}
