// Improve search: not there yet.

import { start } from "../page.js";

start(async () => {});
