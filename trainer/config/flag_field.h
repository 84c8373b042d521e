#pragma once

// For the rows of the flag table only: the way to a field of TrainConfig, as the references of
// flag_table.h take it. A macro, since a name of a nested field can't be passed otherwise.
#define FIELD(x) ([](TrainConfig & c) -> auto& { return c.x; })
