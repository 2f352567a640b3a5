/** The process of the load generator. */
import { measureLists, type ListsJob } from './list-load.ts';
import { measureRate, type RateJob } from './closed-loop.ts';
import { measureDeletes, type DeletesJob } from './delete-load.ts';
import { fill, type FillJob } from './fill.ts';
import { serveJobs } from './jobs.ts';
import { measureWatch, type WatchJob } from './watch-load.ts';

export type LoadJob = RateJob | WatchJob | FillJob | DeletesJob | ListsJob;

serveJobs((job: LoadJob) => {
  switch (job.kind) {
    case 'rate':
      return measureRate(job);
    case 'watch':
      return measureWatch(job);
    case 'fill':
      return fill(job);
    case 'deletes':
      return measureDeletes(job);
    case 'lists':
      return measureLists(job);
  }
});
