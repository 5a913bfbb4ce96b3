export * from './forget.js'
export * from './machine.js'
