declare module 'ioredis-mock' {
  /** A client of ioredis over a store in the process. */
  export default class Mock {
    disconnect(): void
  }
}
