/** The longest turn of this thread's event loop, in CPU time: a busy machine makes turns longer for the wall clock only. */

function cpuMillis(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** While the work goes on. */
export async function longestTurn<T>(work: () => Promise<T>): Promise<{ readonly millis: number; readonly result: T }> {
  let longest = 0;
  let isOver = false;
  await new Promise((resolve) => setImmediate(resolve));
  let before = cpuMillis();
  const look = () => {
    const now = cpuMillis();
    longest = Math.max(longest, now - before);
    before = now;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  const result = await work();
  isOver = true;
  look();
  return { millis: longest, result };
}
