const exercise = require('./exercise.cjs')

const entries = {
  memory: require('once-per-key/memory'),
  testing: require('once-per-key/testing'),
  core: require('once-per-key/core'),
  face: require('once-per-key'),
  manifest: require('once-per-key/package.json'),
}

exercise(entries).then((seen) => console.log(JSON.stringify(seen)))
